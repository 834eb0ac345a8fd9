SELECT app, version, build_id,
       count(*) FILTER (WHERE deadlock) AS deadlocks,
       count(deadlock) AS reports,
       min_by(array_join(deadlocked_threads, ' '), triggered_at) FILTER (WHERE deadlock) AS threads,
       min(triggered_at) FILTER (WHERE deadlock) AS first_seen,
       min_by(path, triggered_at) FILTER (WHERE deadlock) AS first_report
FROM reports
GROUP BY app, version, build_id
HAVING count(*) FILTER (WHERE deadlock) > 0
ORDER BY deadlocks DESC, build_id;
