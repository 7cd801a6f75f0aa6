-- Experiences: what was done (action), in what situation (context), and what came of it (result);
-- and what is learned from whether they were of use.

-- A tag as it is compared where case does not matter.
ALTER TABLE label ADD COLUMN folded TEXT;
UPDATE label SET folded = folded(name);
CREATE INDEX label_by_folded ON label (kind, folded);

-- Which part of an experience a chunk is of: 0 context, 1 action, 2 result; NULL: of any other text.
ALTER TABLE embedding ADD COLUMN field INTEGER CHECK (field IN (0, 1, 2));

-- Episodes that were kept while their texts could not be embedded.
CREATE TABLE unembedded (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE
) STRICT;

-- An experience is an episode whose content is context, action and result, a newline between each.
CREATE TABLE experience (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    memory_type TEXT NOT NULL CHECK (
        memory_type IN ('decision', 'pattern', 'bugfix', 'context', 'antipattern', 'insight')
    ),
    -- Bytes of UTF-8 that the first two take.
    context_bytes INTEGER NOT NULL CHECK (context_bytes >= 0),
    action_bytes INTEGER NOT NULL CHECK (action_bytes >= 0),
    -- BLAKE2b of memory type, project and the three texts: identical ones are found by it.
    digest BLOB NOT NULL CHECK (length(digest) = 16),
    project TEXT,
    -- Public ids. What a parent names may be missing: an import brought the child alone.
    parent ANY,
    superseded_by ANY,
    -- Of an insight: as the trainer or an import gave them.
    source_ids TEXT,
    insight_type TEXT CHECK (insight_type IN ('cluster', 'temporal', 'causal')),
    updated_at INTEGER NOT NULL,
    used_count INTEGER NOT NULL DEFAULT 0,
    last_used_at INTEGER,
    -- Times as an import spelled them, where that is not how this engine writes them.
    given_times TEXT CHECK (given_times IS NULL OR json_type(given_times) = 'object')
) STRICT;

CREATE INDEX experience_by_type ON experience (memory_type, episode);
CREATE INDEX experience_by_digest ON experience (digest);
CREATE INDEX experience_by_parent ON experience (parent) WHERE parent IS NOT NULL;
CREATE INDEX experience_by_successor ON experience (superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX episode_source_by_source ON episode_source (source);
-- To be counted.
CREATE INDEX episode_quarantined ON episode (id) WHERE quarantined;

-- How useful an episode was found. Without a time: an import said so.
CREATE TABLE judgement (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    score REAL NOT NULL CHECK (abs(score) < 1e300),
    judged_at INTEGER
) STRICT;

-- A search that decided how to go about it, and what it showed. Without the query.
CREATE TABLE routing (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    mode TEXT NOT NULL,
    search_strategy TEXT NOT NULL,
    llm_selection TEXT NOT NULL,
    contextualization TEXT NOT NULL,
    proactivity TEXT NOT NULL,
    top_k INTEGER NOT NULL,
    shadow_rewards TEXT NOT NULL CHECK (json_type(shadow_rewards) = 'array'),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE shown (
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    routing INTEGER NOT NULL REFERENCES routing ON DELETE CASCADE,
    judged_at INTEGER,
    rewarded INTEGER NOT NULL DEFAULT 0 CHECK (rewarded IN (0, 1)),
    PRIMARY KEY (episode, routing)
) STRICT, WITHOUT ROWID;

CREATE INDEX shown_by_routing ON shown (routing);

-- What each choice of the router was worth so far, by mode.
CREATE TABLE q_table (
    router_level TEXT NOT NULL,
    state TEXT NOT NULL,
    action TEXT NOT NULL,
    value REAL NOT NULL DEFAULT 0,
    update_count INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (router_level, state, action)
) STRICT, WITHOUT ROWID;

-- Runs that merged, archived and deleted experiences, and what each step changed, so that it can
-- be taken back.
CREATE TABLE consolidation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE consolidation_step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    run INTEGER NOT NULL REFERENCES consolidation ON DELETE CASCADE,
    action TEXT NOT NULL CHECK (action IN ('merge', 'archive', 'delete')),
    -- Public ids: of a merge the survivor and the one it absorbed.
    memories TEXT NOT NULL CHECK (json_type(memories) = 'array'),
    reason TEXT NOT NULL,
    performed_by TEXT NOT NULL,
    before TEXT NOT NULL CHECK (json_type(before) = 'object'),
    at INTEGER NOT NULL,
    undone_at INTEGER
) STRICT;

CREATE INDEX consolidation_step_by_run ON consolidation_step (run);
-- By the one it hid, and by the survivor: its steps go with a memory.
CREATE INDEX consolidation_step_by_memory ON consolidation_step (memories ->> '$[#-1]');
CREATE INDEX consolidation_step_by_survivor ON consolidation_step (memories ->> '$[0]');

-- Runs of the trainer and what they said.
CREATE TABLE training_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    -- The code of the error that ended it.
    failure TEXT,
    messages INTEGER NOT NULL DEFAULT 0,
    insights INTEGER NOT NULL DEFAULT 0,
    duration_secs REAL
) STRICT;

CREATE TABLE recommendation (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES training_run ON DELETE CASCADE,
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    action TEXT NOT NULL,
    reasoning TEXT NOT NULL
) STRICT;

CREATE INDEX recommendation_by_run ON recommendation (run);
CREATE INDEX recommendation_by_episode ON recommendation (episode);

CREATE TABLE metric (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES training_run ON DELETE CASCADE,
    name TEXT NOT NULL,
    value REAL NOT NULL
) STRICT;

CREATE INDEX metric_by_run ON metric (run);

CREATE TABLE artifact (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES training_run ON DELETE CASCADE,
    path TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB CHECK (length(sha256) = 32)
) STRICT;

CREATE INDEX artifact_by_run ON artifact (run);

-- For programs that know the reference server's database: its tables, as views to read. They use
-- nothing newer than SQLite 3.38.
CREATE VIEW memories (
    id, memory_type, context, action, result, score, embedding_context, embedding_action,
    embedding_result, indexed, tags, project, parent_id, source_ids, insight_type, created_at,
    updated_at, used_count, last_used_at, superseded_by
) AS
SELECT
    iif(typeof(e.uid) = 'text', e.uid, lower(
        substr(hex(e.uid), 1, 8) || '-' || substr(hex(e.uid), 9, 4) || '-'
        || substr(hex(e.uid), 13, 4) || '-' || substr(hex(e.uid), 17, 4) || '-'
        || substr(hex(e.uid), 21)
    )),
    x.memory_type,
    CAST(substr(CAST(e.content AS BLOB), 1, x.context_bytes) AS TEXT),
    CAST(substr(CAST(e.content AS BLOB), x.context_bytes + 2, x.action_bytes) AS TEXT),
    CAST(substr(CAST(e.content AS BLOB), x.context_bytes + x.action_bytes + 3) AS TEXT),
    coalesce(j.score, 0.0),
    NULL,
    NULL,
    NULL,
    e.id NOT IN (SELECT u.episode FROM unembedded AS u) AND e.status IS NULL,
    (
        SELECT json_group_array(t.name) FROM (
            SELECT n.name FROM episode_label AS l JOIN label AS n ON n.id = l.label
            WHERE l.episode = e.id AND n.kind = 'tag' ORDER BY l.position
        ) AS t HAVING count(*) > 0
    ),
    x.project,
    iif(typeof(x.parent) <> 'blob', x.parent, lower(
        substr(hex(x.parent), 1, 8) || '-' || substr(hex(x.parent), 9, 4) || '-'
        || substr(hex(x.parent), 13, 4) || '-' || substr(hex(x.parent), 17, 4) || '-'
        || substr(hex(x.parent), 21)
    )),
    x.source_ids,
    x.insight_type,
    coalesce(
        x.given_times ->> 'created_at',
        strftime('%Y-%m-%dT%H:%M:%SZ', e.occurred_at / 1000000, 'unixepoch')
    ),
    coalesce(
        x.given_times ->> 'updated_at',
        strftime('%Y-%m-%dT%H:%M:%SZ', x.updated_at / 1000000, 'unixepoch')
    ),
    x.used_count,
    coalesce(
        x.given_times ->> 'last_used_at',
        strftime('%Y-%m-%dT%H:%M:%SZ', x.last_used_at / 1000000, 'unixepoch')
    ),
    iif(typeof(x.superseded_by) <> 'blob', x.superseded_by, lower(
        substr(hex(x.superseded_by), 1, 8) || '-' || substr(hex(x.superseded_by), 9, 4) || '-'
        || substr(hex(x.superseded_by), 13, 4) || '-' || substr(hex(x.superseded_by), 17, 4) || '-'
        || substr(hex(x.superseded_by), 21)
    ))
FROM experience AS x
JOIN episode AS e ON e.id = x.episode
LEFT JOIN judgement AS j ON j.episode = x.episode
WHERE NOT e.quarantined AND e.forgotten_at IS NULL AND e.invalidated_at IS NULL
AND coalesce(e.status, 'active') IN ('active', 'superseded');

CREATE VIEW feedback_tracking (memory_id, query_id, searched_at, judged, judged_at) AS
SELECT
    iif(typeof(e.uid) = 'text', e.uid, lower(
        substr(hex(e.uid), 1, 8) || '-' || substr(hex(e.uid), 9, 4) || '-'
        || substr(hex(e.uid), 13, 4) || '-' || substr(hex(e.uid), 17, 4) || '-'
        || substr(hex(e.uid), 21)
    )),
    lower(
        substr(hex(r.uid), 1, 8) || '-' || substr(hex(r.uid), 9, 4) || '-'
        || substr(hex(r.uid), 13, 4) || '-' || substr(hex(r.uid), 17, 4) || '-'
        || substr(hex(r.uid), 21)
    ),
    strftime('%Y-%m-%dT%H:%M:%SZ', r.created_at / 1000000, 'unixepoch'),
    s.judged_at IS NOT NULL,
    strftime('%Y-%m-%dT%H:%M:%SZ', s.judged_at / 1000000, 'unixepoch')
FROM shown AS s
JOIN episode AS e ON e.id = s.episode
JOIN routing AS r ON r.id = s.routing;
