SELECT arrayJoin(finding_ids) AS diagnosis,
       uniqExact(path) AS reports,
       uniqExactIf(machine, machine != '') AS machines,
       max(triggered_at) AS last_seen
FROM reports FINAL
GROUP BY diagnosis
ORDER BY reports DESC, diagnosis
LIMIT 20
