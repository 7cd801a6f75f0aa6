-- Times are integers: microseconds since 1970-01-01T00:00:00Z.
-- A public id (uid) is a 16-byte blob when it is a canonical lower-case UUID, else text.

CREATE TABLE store (
    name TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE migration (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- One row per committed write, never updated. Everything derived says which seq it covers.
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    op TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE agent (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- The current model's vectors are searched; the next one's are being written beside them.
CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    name TEXT,
    dim INTEGER NOT NULL CHECK (dim > 0),
    role TEXT UNIQUE CHECK (role IN ('current', 'next'))
) STRICT;

CREATE TABLE episode (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    agent INTEGER REFERENCES agent,
    content TEXT NOT NULL,
    -- The text as full-text search sees it; NULL where that is the content itself.
    search_text TEXT,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    salience REAL NOT NULL DEFAULT 0.5,
    emotional_valence REAL NOT NULL DEFAULT 0.0,
    provenance TEXT NOT NULL CHECK (provenance IN ('user', 'tool', 'external', 'unknown')),
    quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1)),
    -- What the JSONL and socket faces keep about a memory.
    layer TEXT NOT NULL DEFAULT 'episodic',
    memory_type TEXT NOT NULL DEFAULT 'narrative',
    status TEXT,
    status_reason TEXT,
    status_changed_at INTEGER,
    forgotten_at INTEGER,
    invalidated_at INTEGER,
    invalidated_reason TEXT,
    project_path TEXT,
    project_conflict INTEGER NOT NULL DEFAULT 0 CHECK (project_conflict IN (0, 1)),
    source_path TEXT,
    source_raw TEXT,
    source_type TEXT,
    content_hash BLOB,
    metadata TEXT CHECK (metadata IS NULL OR json_type(metadata) = 'object')
) STRICT;

CREATE INDEX episode_by_agent ON episode (agent, occurred_at);
CREATE INDEX episode_by_time ON episode (occurred_at);
CREATE INDEX episode_by_project ON episode (project_path, recorded_at)
    WHERE project_path IS NOT NULL;
CREATE INDEX episode_by_source ON episode (source_path, recorded_at)
    WHERE source_path IS NOT NULL;

-- Importance as of the last decay, and the accesses that are no longer in the access log one by one:
-- by anybody, and by the episode's own agent. No row: never decayed, nothing folded.
CREATE TABLE strength (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    importance REAL NOT NULL DEFAULT 1.0,
    access_count INTEGER NOT NULL DEFAULT 0,
    last_accessed_at INTEGER,
    own_access_count INTEGER NOT NULL DEFAULT 0,
    own_last_accessed_at INTEGER
) STRICT;

-- Actors and tags.
CREATE TABLE label (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('actor', 'tag')),
    name TEXT NOT NULL,
    UNIQUE (kind, name)
) STRICT;

CREATE TABLE episode_label (
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    position INTEGER NOT NULL,
    label INTEGER NOT NULL REFERENCES label,
    PRIMARY KEY (episode, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX episode_by_label ON episode_label (label, episode);

-- The episodes a summary stands for, by public id: they are gone once it is written.
CREATE TABLE episode_source (
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    position INTEGER NOT NULL,
    source ANY NOT NULL,
    PRIMARY KEY (episode, position)
) STRICT, WITHOUT ROWID;

-- One or more vectors per episode: float16, little-endian, unit length.
CREATE TABLE embedding (
    id INTEGER PRIMARY KEY,
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    chunk INTEGER NOT NULL,
    model INTEGER NOT NULL REFERENCES model,
    vector BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX embedding_by_episode ON embedding (episode, model, chunk);

CREATE VIEW episode_text (id, body) AS SELECT id, coalesce(search_text, content) FROM episode;

CREATE VIRTUAL TABLE episode_fts USING fts5 (
    body,
    content = 'episode_text',
    content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

INSERT INTO episode_fts (episode_fts, rank) VALUES ('secure-delete', 1);

-- What was recalled, by which query; the query goes when an episode it returned is forgotten.
CREATE TABLE recall_log (
    id INTEGER PRIMARY KEY,
    agent INTEGER REFERENCES agent,
    query TEXT,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE access_log (
    episode INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
    recall INTEGER NOT NULL REFERENCES recall_log ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    PRIMARY KEY (episode, recall)
) STRICT, WITHOUT ROWID;

CREATE INDEX access_by_recall ON access_log (recall);

-- One window of a reflection run; its windows share the run's uid.
CREATE TABLE reflection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL,
    agent INTEGER REFERENCES agent,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    -- The newest episode of the window; the agent's next one starts behind it.
    last_episode INTEGER,
    episodes_processed INTEGER NOT NULL DEFAULT 0,
    facts_extracted INTEGER NOT NULL DEFAULT 0,
    contradictions_resolved INTEGER NOT NULL DEFAULT 0,
    model_used TEXT,
    cost_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX reflection_by_agent ON reflection (agent, last_episode);

-- Valid time (valid_*) and transaction time (recorded_at, superseded_at).
CREATE TABLE fact (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    agent INTEGER REFERENCES agent,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    recorded_at INTEGER NOT NULL,
    superseded_at INTEGER,
    superseded_by INTEGER REFERENCES fact ON DELETE SET NULL,
    confidence REAL NOT NULL DEFAULT 1.0 CHECK (confidence BETWEEN 0.0 AND 1.0),
    reflection INTEGER REFERENCES reflection ON DELETE SET NULL,
    shared INTEGER NOT NULL DEFAULT 1 CHECK (shared IN (0, 1)),
    quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1))
) STRICT;

CREATE INDEX fact_by_subject ON fact (subject, predicate);
CREATE INDEX fact_by_object ON fact (object);
CREATE INDEX fact_by_successor ON fact (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX fact_by_reflection ON fact (reflection) WHERE reflection IS NOT NULL;

-- Predicates that hold many values at once; all others hold one.
CREATE TABLE predicate (
    name TEXT PRIMARY KEY,
    multi INTEGER NOT NULL CHECK (multi IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Where a fact came from: an episode, or else a name the caller gave in source. The provenance
-- stays when the episode goes, so forgetting a source never makes a fact more trusted.
CREATE TABLE fact_source (
    fact INTEGER NOT NULL REFERENCES fact ON DELETE CASCADE,
    position INTEGER NOT NULL,
    source TEXT,
    episode INTEGER REFERENCES episode ON DELETE SET NULL,
    provenance TEXT NOT NULL,
    PRIMARY KEY (fact, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX fact_by_episode ON fact_source (episode) WHERE episode IS NOT NULL;

CREATE TABLE entity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid ANY NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    first_seen INTEGER,
    last_seen INTEGER
) STRICT;

CREATE TABLE entity_alias (
    alias TEXT PRIMARY KEY,
    entity INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX alias_by_entity ON entity_alias (entity);

-- An edge joins an episode or an entity to an entity; per agent, so that scopes never mix.
CREATE TABLE edge (
    id INTEGER PRIMARY KEY,
    agent INTEGER REFERENCES agent,
    episode INTEGER REFERENCES episode ON DELETE CASCADE,
    entity INTEGER REFERENCES entity ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE,
    relation TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1.0,
    created_at INTEGER NOT NULL,
    CHECK ((episode IS NULL) <> (entity IS NULL))
) STRICT;

CREATE UNIQUE INDEX edge_by_episode ON edge (episode, target, relation, coalesce(agent, 0))
    WHERE episode IS NOT NULL;
CREATE UNIQUE INDEX edge_by_entity ON edge (entity, target, relation, coalesce(agent, 0))
    WHERE entity IS NOT NULL;
CREATE INDEX edge_by_target ON edge (target);
CREATE INDEX edge_by_agent ON edge (agent);
