-- Importance as of the last decay: float64, little-endian, of the episodes 240 block to
-- 240 block + 239; 1 is that of an episode that never decayed, or is gone, and a block of nothing
-- else has no row. A decay writes it for every episode, so it no longer has a row for each.
CREATE TABLE importance (
    block INTEGER PRIMARY KEY,
    importances BLOB NOT NULL CHECK (length(importances) = 1920)
) STRICT;

-- importance_block is engram's own aggregate: SQL has no way to the bytes of a number.
INSERT INTO importance
SELECT episode / 240, importance_block(episode % 240, importance)
FROM strength WHERE importance <> 1.0 GROUP BY episode / 240;

-- What is left in strength: the accesses that are no longer in the access log one by one.
ALTER TABLE strength DROP COLUMN importance;

DELETE FROM strength WHERE access_count = 0;
