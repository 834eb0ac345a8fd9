CREATE TABLE reports AS reports_shard
ENGINE = Distributed(fleet, currentDatabase(), reports_shard,
                     cityHash64(if(report_id = '', path, report_id)))
