INSERT INTO reports
SELECT DISTINCT ON (id) * FROM index_lines('new.jsonl')
WHERE id NOT IN (SELECT id FROM reports)
ORDER BY id, path;
