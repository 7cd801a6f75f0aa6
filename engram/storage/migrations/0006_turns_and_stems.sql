-- What an episode says of itself beside its text, the turns of conversations, and stemmed words.

-- Who said it and when, as it is embedded and searched in front of the text: "Ada (8 May 2023):".
-- NULL where nobody with a name did, and for what was remembered before this version. From here on
-- `search_text` is NULL where the heading and the text are their own searchable form.
ALTER TABLE episode ADD COLUMN heading TEXT;

-- A turn of a conversation: an episode that has an actor. Apart from its episode, for what ranks
-- candidates reads many of these and no text.
CREATE TABLE turn (
    episode INTEGER PRIMARY KEY REFERENCES episode ON DELETE CASCADE,
    -- A digest of agent, provenance, quarantine and tags: only with these in common turns follow
    -- each other.
    thread INTEGER NOT NULL,
    -- That of the episode.
    occurred_at INTEGER NOT NULL,
    -- A digest of the actors, where they ask something and are no assistant.
    asker INTEGER,
    assistant INTEGER NOT NULL CHECK (assistant IN (0, 1)),
    -- The key of the first turn; it may be gone.
    conversation INTEGER NOT NULL,
    -- The key of the turn before, where that asks and this may be the answer; it may be gone.
    answers INTEGER
) STRICT;

CREATE INDEX turn_by_thread ON turn (thread, occurred_at);

DROP TABLE episode_fts;

DROP VIEW episode_text;

CREATE VIEW episode_text (id, body) AS
SELECT id, coalesce(search_text, coalesce(heading || ' ', '') || content) FROM episode;

CREATE VIRTUAL TABLE episode_fts USING fts5 (
    body,
    content = 'episode_text',
    content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

INSERT INTO episode_fts (episode_fts, rank) VALUES ('secure-delete', 1);

INSERT INTO episode_fts (episode_fts) VALUES ('rebuild');

DROP TABLE fact_fts;

CREATE VIRTUAL TABLE fact_fts USING fts5 (
    body,
    content = 'fact_text',
    content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

INSERT INTO fact_fts (fact_fts, rank) VALUES ('secure-delete', 1);

INSERT INTO fact_fts (fact_fts) VALUES ('rebuild');

DROP VIEW schema_meta;

CREATE VIEW schema_meta (key, value) AS
VALUES
    ('tags_format', 'json_array_v1'),
    ('feedback_query_id', 'v1'),
    (
        'fts_tokenizer',
        'porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc'''
    )
UNION ALL
SELECT 'embedding_model', coalesce(m.name, m.fingerprint) FROM model AS m WHERE m.role = 'current';
