SELECT key,
       argMax(process, triggered_at) AS name,
       count() AS reports,
       argMin(kb, triggered_at) AS first_kb,
       argMax(kb, triggered_at) AS last_kb,
       toInt64(argMax(kb, triggered_at)) - toInt64(argMin(kb, triggered_at)) AS grown_kb,
       argMax(path, triggered_at) AS last_report
FROM reports FINAL
ARRAY JOIN process_names AS process, process_keys AS key, process_rss_kb AS kb
GROUP BY key
HAVING reports >= 3 AND grown_kb > 0
ORDER BY grown_kb DESC, key
LIMIT 20
