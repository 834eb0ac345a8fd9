SELECT app, signature,
       count(DISTINCT machine) AS machines,
       count(*) AS reports,
       count(DISTINCT build_id) AS builds,
       max(triggered_at) AS last_seen,
       arg_max(path, triggered_at) AS last_report
FROM reports
WHERE signature IS NOT NULL
GROUP BY app, signature
ORDER BY machines DESC, reports DESC, app, signature
LIMIT 50;
