-- What a memory is to those who keep it for a project: eligible or not, and whose.

-- Memories that are there and not to be found: hidden, invalidated, or of a status other than active.
CREATE INDEX episode_unavailable ON episode (id)
    WHERE coalesce(forgotten_at, invalidated_at, nullif(status, 'active')) IS NOT NULL;
CREATE INDEX episode_by_layer ON episode (layer, forgotten_at) WHERE layer <> 'episodic';
-- What lies dormant was recorded long ago.
CREATE INDEX episode_by_recording ON episode (recorded_at);
CREATE INDEX entity_by_name ON entity (name COLLATE NOCASE);
CREATE INDEX alias_by_name ON entity_alias (alias COLLATE NOCASE);
CREATE INDEX fact_by_subject_name ON fact (subject COLLATE NOCASE);
CREATE INDEX fact_by_object_name ON fact (object COLLATE NOCASE);

-- What changed a memory's lifecycle, for audit; gone with the memory.
CREATE TABLE lifecycle_change (
    id INTEGER PRIMARY KEY,
    memory ANY NOT NULL,
    action TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX lifecycle_by_memory ON lifecycle_change (memory);

-- The project that all episodes name from which a fact came.
ALTER TABLE fact ADD COLUMN project_path TEXT;

-- The eligible memories of each project, newest first: a row for the project that a memory names, or
-- else for each folder above its source. A project is 16 bytes of BLAKE2b of its canonical path, so
-- that no path stays when its memories go. Within a kind rows are in the order of their public ids:
-- 0 are episodes whose uid is a UUID, 1 those where it is text, 2 facts, whose memory is minus their
-- key.
DROP INDEX episode_by_project;
DROP INDEX episode_by_source;

CREATE TABLE project_memory (
    project BLOB NOT NULL CHECK (length(project) = 16),
    kind INTEGER NOT NULL CHECK (kind IN (0, 1, 2)),
    recorded_at INTEGER NOT NULL,
    uid ANY NOT NULL,
    memory INTEGER NOT NULL,
    PRIMARY KEY (project, kind, recorded_at DESC, uid)
) STRICT, WITHOUT ROWID;

-- Where a session left off.
CREATE TABLE session_checkpoint (
    namespace TEXT NOT NULL,
    project_path TEXT NOT NULL,
    task TEXT NOT NULL,
    summary TEXT NOT NULL,
    decisions TEXT NOT NULL CHECK (json_type(decisions) = 'array'),
    next_steps TEXT NOT NULL CHECK (json_type(next_steps) = 'array'),
    blockers TEXT NOT NULL CHECK (json_type(blockers) = 'array'),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, project_path, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_checkpoint_by_time
    ON session_checkpoint (namespace, project_path, updated_at DESC, task);

-- What a caller says it observed. The JSON is canonical, and payload_sha256 is of all of it.
CREATE TABLE check_observation (
    id TEXT PRIMARY KEY,
    project_path TEXT NOT NULL,
    evidence_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    assumption_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('unknown', 'supported', 'contradicted')),
    observed_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    observation TEXT NOT NULL CHECK (json_type(observation) = 'object'),
    provenance TEXT NOT NULL CHECK (json_type(provenance) = 'object'),
    source_refs TEXT NOT NULL CHECK (json_type(source_refs) = 'array'),
    payload_sha256 BLOB NOT NULL CHECK (length(payload_sha256) = 32),
    stored_at INTEGER NOT NULL,
    status TEXT,
    forgotten_at INTEGER,
    invalidated_at INTEGER,
    UNIQUE (project_path, evidence_id)
) STRICT;

CREATE INDEX observation_by_time ON check_observation (project_path, stored_at DESC, id DESC);
CREATE INDEX observation_by_session
    ON check_observation (project_path, session_id, stored_at DESC, id DESC);
CREATE INDEX observation_by_assumption
    ON check_observation (project_path, assumption_id, stored_at DESC, id DESC);

-- What a search might have shown of what lay dormant. Without the query, and without any text.
CREATE TABLE dormant_event (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    episode INTEGER REFERENCES episode ON DELETE CASCADE,
    outcome TEXT NOT NULL CHECK (outcome IN ('candidate', 'none')),
    candidate_count INTEGER NOT NULL,
    relevance REAL,
    bonus REAL,
    dormant_days REAL,
    overlap_count INTEGER,
    query_term_count INTEGER,
    rerank_score REAL,
    shown_at INTEGER,
    feedback TEXT CHECK (feedback IN ('useful', 'irrelevant', 'dismissed')),
    feedback_at INTEGER,
    algorithm TEXT NOT NULL
) STRICT;

CREATE INDEX dormant_event_by_time ON dormant_event (created_at);
CREATE INDEX dormant_event_by_episode ON dormant_event (episode) WHERE episode IS NOT NULL;

-- What of that outlives the events: rotating them starts no memory's rest anew.
CREATE TABLE dormant_state (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    retrieved_at INTEGER,
    shown_at INTEGER,
    used_at INTEGER,
    cooldown_until INTEGER
) STRICT;
