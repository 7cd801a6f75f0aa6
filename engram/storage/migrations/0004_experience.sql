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
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    -- How often the embedder refused the text: those refused least come first.
    refused INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX unembedded_by_refusal ON unembedded (refused);

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
    -- Whose experiences it was about; NULL: everybody's.
    agent INTEGER REFERENCES agent,
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

-- The first vector of each part of an experience as float32, little-endian, made of the float16 that
-- are stored. Byte by byte, for SQL has no other way: a byte's value is its place among all bytes.
CREATE VIEW part_vector (episode, field, vector) AS
SELECT
    v.episode,
    v.field,
    (
        WITH RECURSIVE
        byte (every) AS (SELECT CAST(
            x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'
            || x'202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f'
            || x'404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f'
            || x'606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f'
            || x'808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f'
            || x'a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf'
            || x'c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf'
            || x'e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'
        AS BLOB)),
        half (place, h) AS (
            SELECT -1, 0
            UNION ALL
            SELECT
                place + 2,
                instr(every, substr(v.vector, place + 2, 1)) - 1
                + (instr(every, substr(v.vector, place + 3, 1)) - 1 << 8)
            FROM half CROSS JOIN byte WHERE place + 2 < length(v.vector)
        )
        SELECT CAST(group_concat(
            CASE
                -- What has an exponent, of which infinities have the largest.
                WHEN h & 31744 THEN
                    x'00' || substr(every, ((h & 7) << 5) + 1, 1)
                    || substr(every, ((h >> 3 & 127) | ((h & 1024) >> 3)) + 1, 1)
                    || substr(every, (
                        (h >> 8 & 128)
                        | (iif(h & 31744 = 31744, 255, (h >> 10 & 31) + 112) >> 1)
                    ) + 1, 1)
                WHEN h & 1023 = 0 THEN x'000000' || substr(every, (h >> 8) + 1, 1)
                -- What is too small to have one there has one here.
                ELSE (
                    SELECT
                        substr(every, (bits & 255) + 1, 1)
                        || substr(every, (bits >> 8 & 255) + 1, 1)
                        || substr(every, (bits >> 16 & 255) + 1, 1)
                        || substr(every, (bits >> 24 | (h >> 8 & 128)) + 1, 1)
                    FROM (
                        SELECT (power + 103 << 23) | ((h & 1023) << 23 - power & 8388607) AS bits
                        FROM (
                            SELECT (h & 1022 > 0) + (h & 1020 > 0) + (h & 1016 > 0)
                            + (h & 1008 > 0) + (h & 992 > 0) + (h & 960 > 0) + (h & 896 > 0)
                            + (h & 768 > 0) + (h & 512 > 0) AS power
                        )
                    )
                )
            END, ''
        ) AS BLOB)
        FROM half CROSS JOIN byte WHERE place > 0
    )
FROM embedding AS v
JOIN model AS m ON m.id = v.model AND m.role = 'current'
WHERE v.field IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM embedding AS earlier WHERE earlier.episode = v.episode
    AND earlier.model = v.model AND earlier.field = v.field AND earlier.chunk < v.chunk
);

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
    (SELECT p.vector FROM part_vector AS p WHERE p.episode = e.id AND p.field = 0),
    (SELECT p.vector FROM part_vector AS p WHERE p.episode = e.id AND p.field = 1),
    (SELECT p.vector FROM part_vector AS p WHERE p.episode = e.id AND p.field = 2),
    e.id NOT IN (SELECT u.episode FROM unembedded AS u) AND coalesce(e.status, 'active') = 'active',
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
AND (coalesce(e.status, 'active') = 'active' OR e.status = 'superseded' AND x.superseded_by IS NOT NULL);

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

CREATE VIEW routing_log (
    query_id, mode, search_strategy, llm_selection, contextualization, proactivity, top_k,
    shadow_rewards, created_at
) AS
SELECT
    lower(
        substr(hex(r.uid), 1, 8) || '-' || substr(hex(r.uid), 9, 4) || '-'
        || substr(hex(r.uid), 13, 4) || '-' || substr(hex(r.uid), 17, 4) || '-'
        || substr(hex(r.uid), 21)
    ),
    r.mode,
    r.search_strategy,
    r.llm_selection,
    r.contextualization,
    r.proactivity,
    r.top_k,
    r.shadow_rewards,
    strftime('%Y-%m-%dT%H:%M:%SZ', r.created_at / 1000000, 'unixepoch')
FROM routing AS r;

-- How that database calls what this one does. The tokenizer is that of `episode_fts`.
CREATE VIEW schema_meta (key, value) AS
VALUES
    ('tags_format', 'json_array_v1'),
    ('feedback_query_id', 'v1'),
    ('fts_tokenizer', 'unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''')
UNION ALL
SELECT 'embedding_model', coalesce(m.name, m.fingerprint) FROM model AS m WHERE m.role = 'current';
