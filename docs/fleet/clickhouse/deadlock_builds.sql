SELECT app, version, build_id,
       countIf(deadlock = 1) AS deadlocks,
       count(deadlock) AS reports,
       argMinIf(arrayStringConcat(deadlocked_threads, ' '), triggered_at, deadlock = 1) AS threads,
       minIf(triggered_at, deadlock = 1) AS first_seen,
       argMinIf(path, triggered_at, deadlock = 1) AS first_report
FROM reports FINAL
GROUP BY app, version, build_id
HAVING deadlocks > 0
ORDER BY deadlocks DESC, build_id
