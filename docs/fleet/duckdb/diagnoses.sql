SELECT diagnosis,
       count(DISTINCT path) AS reports,
       count(DISTINCT machine) AS machines,
       max(triggered_at) AS last_seen
FROM (SELECT unnest(finding_ids) AS diagnosis, path, machine, triggered_at FROM reports)
GROUP BY diagnosis
ORDER BY reports DESC, diagnosis
LIMIT 20;
