SELECT key,
       arg_max(process, triggered_at) AS name,
       count(*) AS reports,
       arg_min(kb, triggered_at) AS first_kb,
       arg_max(kb, triggered_at) AS last_kb,
       arg_max(kb, triggered_at) - arg_min(kb, triggered_at) AS grown_kb,
       arg_max(path, triggered_at) AS last_report
FROM (SELECT unnest(process_names) AS process, unnest(process_keys) AS key,
             unnest(process_rss_kb)::BIGINT AS kb, triggered_at, path
      FROM reports)
GROUP BY key
HAVING reports >= 3 AND grown_kb > 0
ORDER BY grown_kb DESC, key
LIMIT 20;
