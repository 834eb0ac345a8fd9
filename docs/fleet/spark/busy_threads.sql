SELECT thread,
       max(threads) FILTER (WHERE version = '1.11.0') AS threads,
       count(*) FILTER (WHERE version = '1.11.0') AS reports,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY cpu) FILTER (WHERE version = '1.11.0') AS p50,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY cpu) FILTER (WHERE version = '1.11.0') AS p95,
       max(cpu) FILTER (WHERE version = '1.11.0') AS maximum,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY cpu)
           FILTER (WHERE version <> '1.11.0') AS p95_elsewhere
FROM reports LATERAL VIEW
     inline(arrays_zip(thread_names, thread_counts, thread_cpu_percents)) list AS thread, threads, cpu
WHERE app = 'viewer'
GROUP BY thread
HAVING count(*) FILTER (WHERE version = '1.11.0') >= 20
ORDER BY p95 DESC, thread
LIMIT 20;
