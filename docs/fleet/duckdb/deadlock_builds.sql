SELECT app, version, build_id,
       count(*) FILTER (deadlock) AS deadlocks,
       count(deadlock) AS reports,
       arg_min(array_to_string(deadlocked_threads, ' '), triggered_at) FILTER (deadlock) AS threads,
       min(triggered_at) FILTER (deadlock) AS first_seen,
       arg_min(path, triggered_at) FILTER (deadlock) AS first_report
FROM reports
GROUP BY app, version, build_id
HAVING deadlocks > 0
ORDER BY deadlocks DESC, build_id;
