/* What the options of a session become. */
#include "session/session.h"
#include "unit/dir.h"

DIR_SUITE(config);

static bp_config read_config(bugpack_options *options) {
    bp_config config;
    options->app_name = "viewer";
    options->report_dir = dir.path;
    cr_assert(zero(int, bp_config_read(options, &config, &failure)), "%s", failure.message);
    return config;
}

static void expect_rate(const bp_report_rate *rate, uint32_t cooldown_ms, uint32_t cap) {
    cr_expect(eq(u32, rate->cooldown_ms, cooldown_ms));
    cr_expect(eq(u32, rate->cap, cap));
}

Test(config, fills_in_every_default) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bp_config config = read_config(&options);
    cr_expect(eq(u32, config.sample_window_ms, BUGPACK_SAMPLE_WINDOW_DEFAULT_MS));
    cr_expect(eq(u32, config.provider_timeout_ms, 2000));
    cr_expect(eq(sz, config.log_ring_bytes, (size_t)4 << 20));
    cr_expect(eq(int, config.log_level, BUGPACK_LEVEL_DEBUG));
    cr_expect(eq(sz, config.artefact_limit_bytes, (size_t)64 << 20));
    cr_expect(eq(u64, config.traffic_budget_bytes, (uint64_t)50 << 20));
    cr_expect(eq(u32, config.history_interval_ms, 1000));
    cr_expect(eq(u32, config.all_reports.max_count, 1000));
    cr_expect(eq(u64, config.all_reports.max_bytes, (uint64_t)4 << 30));
    cr_expect(eq(u64, config.min_free_bytes, (uint64_t)16 << 20));
    cr_expect(zero(u64, config.max_zip_bytes));
    expect_rate(&config.disconnect, 60000, 20);
    expect_rate(&config.hang, 60000, 20);
    expect_rate(&config.condition, 60000, 20);
    cr_expect(eq(u32, config.max_per_signature, 5));
    cr_expect(eq(u32, config.pedantic.cap, 50));
    cr_expect(eq(u32, config.pedantic.channel_cap, 0));
    cr_expect(zero(u64, config.auto_snapshot.interval_ns));
    cr_expect(eq(u32, config.auto_snapshot.dir.bounds.max_count, 20));
    cr_expect(eq(u64, config.auto_snapshot.dir.bounds.max_bytes, (uint64_t)512 << 20));
    cr_expect(eq(u64, config.crash.interval_ns, 5 * BP_NS_PER_SEC));
    cr_expect(config.crash.scope.has_session && !config.crash.scope.has_hosts);
    cr_expect(not(config.redacts_at_call || config.answers_trigger || config.with_hostname));
    bp_config_release(&config);
}

Test(config, keeps_what_the_host_says_apart) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.limits.disconnect_cooldown_ms = 1;
    options.limits.disconnect_cap = 2;
    options.limits.hang_cooldown_ms = 3;
    options.limits.hang_cap = 4;
    options.limits.condition_cooldown_ms = 5;
    options.limits.condition_cap = BUGPACK_OFF;
    options.limits.per_signature = BUGPACK_OFF;
    options.limits.report_dir_max_count = 6;
    options.limits.report_dir_max_bytes = BUGPACK_OFF;
    options.auto_snapshot.interval_ms = 7;
    options.auto_snapshot.max_count = 8;
    options.auto_snapshot.max_bytes = 9;
    options.recorder.crash_refresh_interval_ms = 2000;
    options.pedantic.cap = BUGPACK_OFF;
    options.with_hostname = true;
    options.answers_trigger = true;
    options.redaction.mode = BUGPACK_REDACT_AT_CALL;
    options.without_entries = "stacks.json";
    options.limits.max_zip_bytes = 65536;
    bp_config config = read_config(&options);
    expect_rate(&config.disconnect, 1, 2);
    expect_rate(&config.hang, 3, 4);
    expect_rate(&config.condition, 5, 0);
    cr_expect(zero(u32, config.max_per_signature));
    cr_expect(eq(u32, config.all_reports.max_count, 6));
    cr_expect(zero(u64, config.all_reports.max_bytes));
    cr_expect(eq(u64, config.auto_snapshot.interval_ns, 7 * BP_NS_PER_MS));
    cr_expect(eq(u32, config.auto_snapshot.dir.bounds.max_count, 8));
    cr_expect(eq(u64, config.auto_snapshot.dir.bounds.max_bytes, 9));
    cr_expect(eq(u64, config.crash.interval_ns, 2 * BP_NS_PER_SEC));
    cr_expect(config.crash.scope.has_session && config.crash.scope.has_hosts);
    cr_expect(eq(u32, config.pedantic.cap, UINT32_MAX));
    cr_expect(eq(u64, config.max_zip_bytes, 65536));
    cr_expect(config.with_hostname);
    cr_expect(config.answers_trigger && config.redacts_at_call);
    cr_expect(bp_config_leaves_out(&config, "stacks.json"));
    cr_expect(not(bp_config_leaves_out(&config, "process.json")));
    bp_config_release(&config);
}

Test(config, says_what_may_be_done_to_each_directory) {
    char expected[512], pedantic[512];
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.create_report_dir = true;
    (void)snprintf(expected, sizeof expected, "%s/auto-snapshots", dir.path);
    (void)snprintf(pedantic, sizeof pedantic, "%s/gaps/", dir.path);
    options.pedantic.dir = pedantic;
    bp_config config = read_config(&options);
    pedantic[strlen(pedantic) - 1] = '\0';
    cr_expect(eq(str, config.report_dir.path, dir.path));
    cr_expect(eq(str, config.pedantic.dir.path, pedantic));
    cr_expect(eq(str, config.auto_snapshot.dir.path, expected));
    cr_expect(config.report_dir.may_create && config.pedantic.dir.may_create);
    cr_expect(config.auto_snapshot.dir.may_create && config.auto_snapshot.dir.is_private);
    cr_expect(eq(str, config.auto_snapshot.dir.parent, dir.path));
    bp_config_release(&config);
    options.create_report_dir = false;
    options.auto_snapshot.dir = pedantic;
    config = read_config(&options);
    cr_expect(not(config.report_dir.may_create || config.pedantic.dir.may_create));
    cr_expect(config.auto_snapshot.dir.may_create, "it is made in a directory that is there");
    cr_expect(not(config.auto_snapshot.dir.is_private), "the host has chosen it");
    cr_expect(eq(ptr, config.auto_snapshot.dir.parent, NULL));
    bp_config_release(&config);
}

Test(config, stores_nothing_of_the_host_for_a_crash_when_that_is_off) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.recorder.crash_refresh_interval_ms = BUGPACK_OFF;
    bp_config config = read_config(&options);
    cr_expect(eq(u64, config.crash.interval_ns, UINT64_MAX));
    cr_expect(not(config.crash.scope.has_session || config.crash.scope.has_hosts));
    bp_config_release(&config);
}
