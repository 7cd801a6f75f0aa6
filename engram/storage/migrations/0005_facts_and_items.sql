-- Facts found by words and by meaning, and items: values kept under a namespace and a key.

-- The text as full-text search sees it; NULL where that is the three parts themselves.
ALTER TABLE fact ADD COLUMN search_text TEXT;

CREATE VIEW fact_text (id, body) AS
SELECT id, coalesce(search_text, subject || ' ' || predicate || ' ' || object) FROM fact;

CREATE VIRTUAL TABLE fact_fts USING fts5 (
    body,
    content = 'fact_text',
    content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

INSERT INTO fact_fts (fact_fts, rank) VALUES ('secure-delete', 1);

-- The vectors of a fact, one per chunk: float16, little-endian, unit length. A fact without them, or
-- with those of another model than the current, is embedded by the first recall that may return it.
CREATE TABLE fact_embedding (
    fact INTEGER NOT NULL REFERENCES fact ON DELETE CASCADE,
    chunk INTEGER NOT NULL,
    model INTEGER NOT NULL REFERENCES model,
    vector BLOB NOT NULL,
    PRIMARY KEY (fact, chunk)
) STRICT, WITHOUT ROWID;

-- A value that a program keeps under a namespace and a key. It is an episode, whose text is what of
-- the value is searched, so every face finds it and an erasure of the episode takes it along.
CREATE TABLE item (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    -- The agent that the episode is of, 0 where it is nobody's: those are told apart too.
    owner INTEGER NOT NULL,
    -- The labels of the namespace as a JSON array without spaces: what begins with the same labels
    -- lies side by side in the index.
    namespace TEXT NOT NULL CHECK (json_type(namespace) = 'array'),
    key TEXT NOT NULL,
    value TEXT NOT NULL CHECK (json_type(value) = 'object'),
    -- The bytes of UTF-8 of each text that is searched, a newline between any two of them; NULL:
    -- none is, so that the episode has no vector, and no search or list of episodes shows it.
    parts TEXT CHECK (parts IS NULL OR json_type(parts) = 'array'),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Microseconds that it lives after a write, or a read that prolongs it; NULL: for ever.
    lifetime INTEGER CHECK (lifetime > 0),
    expires_at INTEGER,
    CHECK ((lifetime IS NULL) = (expires_at IS NULL)),
    UNIQUE (owner, namespace, key)
) STRICT;

CREATE INDEX item_by_expiry ON item (owner, expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX item_without_text ON item (owner) WHERE parts IS NULL;
