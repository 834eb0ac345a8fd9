SELECT thread,
       maxIf(count, version = '1.11.0') AS threads,
       countIf(version = '1.11.0') AS reports,
       round(-quantileExactIf(0.5)(-cpu, version = '1.11.0'), 2) AS p50,
       round(-quantileExactIf(0.05)(-cpu, version = '1.11.0'), 2) AS p95,
       round(maxIf(cpu, version = '1.11.0'), 2) AS maximum,
       round(-quantileExactIf(0.05)(-cpu, version != '1.11.0'), 2) AS p95_elsewhere
FROM reports FINAL
ARRAY JOIN thread_names AS thread, thread_counts AS count, thread_cpu_percents AS cpu
WHERE app = 'viewer'
GROUP BY thread
HAVING reports >= 20
ORDER BY p95 DESC, thread
LIMIT 20
