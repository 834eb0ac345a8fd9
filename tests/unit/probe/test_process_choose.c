#include "process/process_list.h"
#include "unit/unit.h"

/* The texts are not freed: nothing here is owned. */
#define PROCESS(id, parent, began, comm, file, group)                                              \
    {                                                                                              \
        .pid = id, .parent_pid = parent, .start = began, .name = comm, .executable = file,         \
        .cgroup = group                                                                            \
    }

static char nginx[] = "/usr/sbin/nginx", removed[] = "/usr/sbin/nginx (deleted)";
static char postgres[] = "/usr/lib/postgresql/15/bin/postgres", bash[] = "/bin/bash";
static char python[] = "/usr/bin/python3.11", vim[] = "/usr/bin/vim", php[] = "/usr/bin/php";
static char web[] = "/system.slice/nginx.service", below_web[] = "/system.slice/nginx.service/sub";
static char near_web[] = "/system.slice/nginx.service2";
static char user_web[] = "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service";
static char long_title[] = "/bin/sh ./long-script-name.sh -v";
static char other_title[] = "/bin/sh long-script-name.sh.old";

static bp_listed_process machine[] = {
    PROCESS(1, 0, 1, "init", NULL, NULL),
    PROCESS(100, 1, 10, "nginx", nginx, web),
    PROCESS(101, 100, 11, "nginx", nginx, web),
    PROCESS(102, 100, 12, "renamed", nginx, below_web),
    PROCESS(103, 102, 13, "php", php, web),
    PROCESS(200, 1, 20, "bash", bash, NULL),
    PROCESS(201, 200, 21, "vim", vim, near_web),
    PROCESS(300, 1, 30, "bash", bash, user_web),
    PROCESS(301, 300, 31, "bash", bash, NULL),
    /* Ids wrap around: a child may have a smaller one, and the first is the root all the same. */
    PROCESS(400, 900, 91, "postgres", NULL, NULL),
    PROCESS(500, 1, 50, "myserver", python, NULL),
    PROCESS(501, 500, 51, "worker-1", python, NULL),
    PROCESS(600, 1, 60, "old", removed, NULL),
    {.pid = 700, .parent_pid = 100, .start = 70, .name = "nginx", .is_zombie = true},
    PROCESS(800, 1, 80, "bugpack", NULL, NULL),
    {.pid = 850, .parent_pid = 1, .start = 85, .name = "long-script-nam", .title = long_title},
    {.pid = 851, .parent_pid = 1, .start = 86, .name = "long-script-nam", .title = other_title},
    PROCESS(900, 1, 90, "postgres", postgres, NULL),
};

static bp_process_choice choose(bp_process_query query) {
    const bp_process_list list = {machine, sizeof machine / sizeof machine[0]};
    bp_process_choice choice = {.items = NULL};
    query.own_pid = 800;
    cr_assert(zero(int, bp_process_choose(&list, &query, &choice, NULL)));
    return choice;
}

/* Compares the ids with a list that ends in 0. */
static void expect(bp_process_query query, bool is_ambiguous, const pid_t *pids) {
    CLEANUP(bp_process_choice_release) bp_process_choice choice = choose(query);
    size_t count = 0;
    for (; pids[count] != 0; count++) {
        cr_expect(lt(sz, count, choice.count));
        if (count < choice.count) {
            cr_expect(eq(int, choice.items[count]->pid, pids[count]));
        }
    }
    cr_expect(eq(sz, choice.count, count));
    cr_expect(eq(int, choice.is_ambiguous, is_ambiguous));
}

static bp_process_query by(bp_process_query_kind kind, const char *text) {
    return (bp_process_query){.kind = kind, .text = text};
}

Test(process_choose, a_name_means_a_tree_from_its_root) {
    expect(by(BP_PROCESS_BY_NAME, "postgres"), false, (const pid_t[]){900, 400, 0});
    expect(by(BP_PROCESS_BY_NAME, "vim"), false, (const pid_t[]){201, 0});
}

Test(process_choose, workers_that_run_the_same_file_belong_to_it_whatever_they_are_called) {
    expect(by(BP_PROCESS_BY_NAME, "myserver"), false, (const pid_t[]){500, 501, 0});
}

Test(process_choose, the_whole_name_of_a_script_means_it_though_the_kernel_has_cut_it) {
    expect(by(BP_PROCESS_BY_NAME, "long-script-name.sh"), false, (const pid_t[]){850, 0});
    expect(by(BP_PROCESS_BY_NAME, "long-script-nam"), true, (const pid_t[]){850, 851, 0});
    expect(by(BP_PROCESS_BY_NAME, "long-script-name"), false, (const pid_t[]){0});
}

Test(process_choose, several_trees_are_ambiguous_and_their_roots_are_told) {
    bp_process_choice choice = choose(by(BP_PROCESS_BY_NAME, "bash"));
    cr_assert(choice.is_ambiguous && choice.count == 2);
    cr_expect(eq(int, choice.items[0]->pid, 200));
    cr_expect(eq(sz, choice.member_counts[0], 1));
    cr_expect(eq(int, choice.items[1]->pid, 300));
    cr_expect(eq(sz, choice.member_counts[1], 2));
    bp_process_choice_release(&choice);
    /* A file that was removed keeps its name. */
    expect(by(BP_PROCESS_BY_NAME, "nginx"), true, (const pid_t[]){100, 600, 0});
}

Test(process_choose, nobody_is_meant_by_part_of_a_name_and_neither_are_we) {
    const char *names[] = {"bugpack", "ngin", "nginxx", "bin", ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        expect(by(BP_PROCESS_BY_NAME, names[i]), false, (const pid_t[]){0});
    }
}

Test(process_choose, descendants_come_on_request) {
    expect((bp_process_query){.pids = (const pid_t[]){100}, .pid_count = 1, .with_children = true},
           false, (const pid_t[]){100, 101, 102, 103, 0});
    expect((bp_process_query){.kind = BP_PROCESS_BY_NAME, .text = "vim", .with_children = true},
           false, (const pid_t[]){201, 0});
}

Test(process_choose, ids_keep_their_order_and_what_is_not_there_is_left_out) {
    expect((bp_process_query){.pids = (const pid_t[]){900, 5, 100, 700}, .pid_count = 4}, false,
           (const pid_t[]){900, 100, 0});
}

Test(process_choose, a_unit_is_a_component_of_the_cgroup) {
    expect(by(BP_PROCESS_BY_UNIT, "user@1000"), false, (const pid_t[]){300, 0});
    expect(by(BP_PROCESS_BY_UNIT, "user@1000.service"), false, (const pid_t[]){300, 0});
    expect(by(BP_PROCESS_BY_UNIT, "nginx.service2"), false, (const pid_t[]){201, 0});
    /* One of the system and one of a user. */
    CLEANUP(bp_process_choice_release)
    bp_process_choice choice = choose(by(BP_PROCESS_BY_UNIT, "nginx"));
    cr_expect(choice.is_ambiguous);
}

Test(process_choose, a_cgroup_holds_those_below_it) {
    expect(by(BP_PROCESS_BY_CGROUP, web), false, (const pid_t[]){100, 101, 102, 103, 0});
    expect(by(BP_PROCESS_BY_CGROUP, below_web), false, (const pid_t[]){102, 0});
    expect(by(BP_PROCESS_BY_CGROUP, "/system.slice/"), false,
           (const pid_t[]){100, 101, 102, 103, 201, 0});
}

Test(process_choose, a_circle_of_parents_ends) {
    bp_listed_process circle[] = {PROCESS(7, 8, 1, "a", bash, NULL),
                                  PROCESS(8, 7, 2, "a", bash, NULL)};
    const bp_process_list list = {circle, 2};
    CLEANUP(bp_process_choice_release) bp_process_choice choice = {.items = NULL};
    const bp_process_query query = by(BP_PROCESS_BY_NAME, "a");
    cr_assert(zero(int, bp_process_choose(&list, &query, &choice, NULL)));
}

Test(process_choose, the_smaller_id_comes_first_where_two_began_at_once) {
    bp_listed_process twins[] = {PROCESS(7, 1, 5, "a", bash, NULL),
                                 PROCESS(8, 1, 5, "a", bash, NULL)};
    const bp_process_list list = {twins, 2};
    CLEANUP(bp_process_choice_release) bp_process_choice choice = {.items = NULL};
    const bp_process_query query = by(BP_PROCESS_BY_NAME, "a");
    cr_assert(zero(int, bp_process_choose(&list, &query, &choice, NULL)));
    cr_assert(eq(sz, choice.count, 2));
    cr_expect(eq(int, choice.items[0]->pid, 7));
    cr_expect(eq(int, choice.items[1]->pid, 8));
}
