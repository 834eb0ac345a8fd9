SELECT app, signature,
       uniqExactIf(machine, machine != '') AS machines,
       count() AS reports,
       uniqExactIf(build_id, build_id != '') AS builds,
       max(triggered_at) AS last_seen,
       argMax(path, triggered_at) AS last_report
FROM reports FINAL
WHERE signature != ''
GROUP BY app, signature
ORDER BY machines DESC, reports DESC, app, signature
LIMIT 50
