SELECT diagnosis,
       count(DISTINCT path) AS reports,
       count(DISTINCT machine) AS machines,
       max(triggered_at) AS last_seen
FROM reports LATERAL VIEW explode(finding_ids) list AS diagnosis
GROUP BY diagnosis
ORDER BY reports DESC, diagnosis
LIMIT 20;
