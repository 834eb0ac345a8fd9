SELECT thread,
       max(threads) FILTER (version = '1.11.0') AS threads,
       count(*) FILTER (version = '1.11.0') AS reports,
       quantile_disc(cpu, 0.5) FILTER (version = '1.11.0') AS p50,
       quantile_disc(cpu, 0.95) FILTER (version = '1.11.0') AS p95,
       max(cpu) FILTER (version = '1.11.0') AS maximum,
       quantile_disc(cpu, 0.95) FILTER (version <> '1.11.0') AS p95_elsewhere
FROM (SELECT version, unnest(thread_names) AS thread, unnest(thread_counts) AS threads,
             unnest(thread_cpu_percents) AS cpu
      FROM reports WHERE app = 'viewer')
GROUP BY thread
HAVING reports >= 20
ORDER BY p95 DESC, thread
LIMIT 20;
