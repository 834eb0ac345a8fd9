/*
 * profile.folded as a tree of calls, and the path that a thread spends its time on.
 */
#include "base/buffer.h"
#include "entries/call_tree.h"
#include "unit/unit.h"

static bp_call_tree tree;
static char list[BP_FRAME_LIST_BYTES];
static bp_call_path path;

static void teardown(void) {
    bp_call_tree_release(&tree);
}

TestSuite(call_tree, .fini = teardown);

static void add(const char *const *lines) {
    for (; *lines != NULL; lines++) {
        cr_assert(eq(int, bp_call_tree_add(&tree, *lines, strlen(*lines)), BUGPACK_OK));
    }
    cr_assert(eq(int, bp_call_tree_end(&tree), BUGPACK_OK));
}
#define ADD(...) add((const char *const[]){__VA_ARGS__, NULL})

/* The path of a thread as it is shown, and the samples of its first function. */
static uint64_t find(const char *thread) {
    uint32_t node = bp_call_tree_thread(&tree, thread);
    cr_assert(ne(u32, node, 0), "no thread %s", thread);
    bp_call_tree_find_path(&tree, node, &path);
    bp_call_tree_print_path(&tree, &path, list);
    return path.samples;
}

Test(call_tree, divides_a_line_at_its_last_space) {
    static const struct {
        const char *line, *function; /* NULL: the line is malformed */
        uint64_t samples;
    } rows[] = {{"a;main 1", "main", 1},
                {"a thread;operator new(unsigned long) 182", "operator new(unsigned long)", 182},
                {"w\xc3\xa9;f<int, char const*> 007", "f<int, char const*>", 7},
                {"idle 4294967295", "idle", UINT32_MAX},
                {"a 4294967296", NULL, 0},
                {"a 99999999999999999999999999", NULL, 0},
                {"a 00000000000000000000000001", NULL, 0},
                {"", NULL, 0},
                {"12", NULL, 0},
                {"a;main", NULL, 0},
                {"a;main ", NULL, 0},
                {"a;main 0", NULL, 0},
                {"a;main -1", NULL, 0},
                {"a;main 1\r", NULL, 0},
                {"a;main12", NULL, 0},
                {" 1", NULL, 0},
                {";main 1", NULL, 0},
                {"a; 1", NULL, 0},
                {"a;;main 1", NULL, 0},
                {"a;m\x1b[31m 1", NULL, 0},
                {"a;m\x7f 1", NULL, 0},
                {"a;\xff 1", NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t line_bytes = strlen(rows[i].line);
        char *line = malloc(line_bytes + 1); /* of just this size */
        memcpy(line, rows[i].line, line_bytes);
        cr_assert(eq(int, bp_call_tree_add(&tree, line, line_bytes), BUGPACK_OK));
        free(line);
        cr_expect(eq(u64, tree.bad_line_count, rows[i].function == NULL), "%zu", i);
        cr_expect(eq(u64, bp_call_tree_samples(&tree), rows[i].samples), "%zu", i);
        if (rows[i].function != NULL) {
            uint32_t last = (uint32_t)tree.node_count - 1;
            cr_expect(
                eq(str, (char *)bp_call_tree_node_name(&tree, last), (char *)rows[i].function));
        }
        bp_call_tree_release(&tree);
    }
}

Test(call_tree, follows_the_heaviest_child_while_it_has_half) {
    ADD("pricer;main;serve;price_all;count_primes 90", "pricer;main;serve;price_all 5",
        "pricer;main;serve;read_prices 4", "pricer;main;log 1", "idle;main;wait 2");
    cr_expect(eq(u64, bp_call_tree_samples(&tree), 102));
    cr_expect(eq(u64, find("pricer"), 90));
    cr_expect(eq(str, list, "count_primes < price_all < serve < main"));
    cr_expect(eq(u64, find("idle"), 2));
    cr_expect(eq(u32, bp_call_tree_thread(&tree, "main"), 0), "a function is no thread");
    cr_expect(eq(u64, bp_call_tree_self(&tree, "count_primes"), 90));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "main"), 0));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "nowhere"), 0));
}

Test(call_tree, stops_where_no_child_has_half) {
    ADD("even;main;a 50", "even;main;b 50", "odd;main;a 49", "odd;main;b 51", "split;a 49",
        "split;b 49", "split;c 2");
    cr_expect(eq(u64, find("even"), 50));
    cr_expect(eq(str, list, "a < main"), "a half is enough, and the first of two is taken");
    cr_expect(eq(u64, find("odd"), 51));
    cr_expect(eq(str, list, "b < main"));
    cr_expect(eq(u64, find("split"), 0));
    cr_expect(eq(str, list, ""));
}

Test(call_tree, adds_up_lines_and_threads_of_one_name_in_any_order) {
    ADD("w;main;f 1", "w;main 3", "w;main;f;g 2", "w;main;f 4", "v;main;f 8");
    cr_expect(eq(u64, find("w"), 7));
    cr_expect(eq(str, list, "f < main"));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "f"), 13));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "main"), 3));
    const bp_call_name *top[2];
    cr_assert(eq(sz, bp_call_tree_top(&tree, top, 2), 2));
    cr_expect(eq(str, bp_call_tree_text(&tree, top[0]), "f"));
    cr_expect(eq(str, bp_call_tree_text(&tree, top[1]), "main"));
}

Test(call_tree, folds_the_c_library_as_stacks_are_folded) {
    ADD("copier;_start;__libc_start_main@@GLIBC_2.34;__libc_start_call_main;main;copy;[libc.so.6+"
        "0x1234];__memmove_avx_unaligned_erms 60",
        "started;clone3;start_thread;work(int);std::vector<int, std::allocator<int> >::at(unsigned "
        "long) 9",
        "caller;main;loop;read;__libc_read;[kernel] 5", "lost;[...];deep;deeper 4", "none;[...] 4",
        "kernel;[kernel] 7", "waits;main;epoll_wait;[kernel] 6", "waits;main;epoll_wait 3");
    cr_expect(eq(u64, find("copier"), 60));
    cr_expect(eq(str, list, "[libc.so.6+0x1234] < copy < main"));
    cr_expect(eq(u64, find("started"), 9));
    cr_expect(eq(str, list, "std::vector<int, std::allocator<int> >::at < work"));
    (void)find("caller");
    cr_expect(eq(str, list, "__libc_read < read < loop < main"));
    (void)find("lost");
    cr_expect(eq(str, list, "deeper < deep"));
    cr_expect(eq(u64, find("none"), 0));
    cr_expect(eq(u64, find("kernel"), 7));
    cr_expect(eq(str, list, "[kernel]"));
    cr_expect(eq(u64, find("waits"), 9));
    cr_expect(eq(str, list, "epoll_wait < main"));
}

Test(call_tree, counts_a_function_that_calls_itself_from_the_outermost) {
    ADD("r;main;walk 1", "r;main;walk;walk 3", "r;main;walk;walk;walk 3", "r;main;walk;walk;end 2",
        "r;main 1");
    cr_expect(eq(u64, find("r"), 9));
    cr_expect(eq(str, list, "walk ×2 < main"));
    cr_expect(eq(str, bp_call_tree_node_name(&tree, path.caller), "main"));
}

Test(call_tree, leaves_out_what_is_malformed_and_says_how_much) {
    ADD("a;main 1", "a;main", "\x1b]0;owned\x07 1", "a;main 2");
    cr_expect(eq(u64, tree.bad_line_count, 2));
    cr_expect(eq(u64, tree.line_count, 4));
    cr_expect(eq(u64, bp_call_tree_samples(&tree), 3));
}

Test(call_tree, is_empty_without_lines) {
    cr_expect(eq(int, bp_call_tree_end(&tree), BUGPACK_OK));
    cr_expect(eq(u64, bp_call_tree_samples(&tree), 0));
    cr_expect(eq(u32, bp_call_tree_thread(&tree, "main"), 0));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "main"), 0));
}

Test(call_tree, bounds_the_depth_of_a_stack) {
    BUFFER(line, 1 << 20);
    (void)bp_buffer_append_text(&line, "deep");
    for (int i = 0; i < 3 * BP_CALL_TREE_DEPTH_MAX; i++) {
        (void)bp_buffer_printf(&line, ";f%d", i);
    }
    (void)bp_buffer_append_text(&line, " 5");
    ADD(bp_buffer_text(&line));
    cr_expect(eq(u64, find("deep"), 5));
    cr_expect(eq(sz, path.count, BP_CALL_TREE_DEPTH_MAX - 1));
    cr_expect(eq(str, bp_call_tree_node_name(&tree, path.nodes[0]), "…"));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "…"), 5));
}

Test(call_tree, leaves_out_whole_lines_that_find_no_room) {
    char line[64];
    cr_assert(eq(int, bp_call_tree_add(&tree, "a;main;f 7", 10), BUGPACK_OK));
    for (unsigned i = 0; i < BP_CALL_TREE_NAME_MAX + 10u; i++) {
        int length = snprintf(line, sizeof line, "a;main;g%u;h 1", i);
        cr_assert(eq(int, bp_call_tree_add(&tree, line, (size_t)length), BUGPACK_OK));
    }
    cr_assert(eq(int, bp_call_tree_end(&tree), BUGPACK_OK));
    cr_expect(eq(sz, tree.name_count, BP_CALL_TREE_NAME_MAX));
    uint64_t kept = BP_CALL_TREE_NAME_MAX - 4; /* other names: a, main, f, h */
    cr_expect(eq(u64, bp_call_tree_samples(&tree), 7 + kept));
    cr_expect(eq(u64, tree.left_samples, 14));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "f"), 7));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "h"), kept));
    cr_expect(eq(u64, bp_call_tree_self(&tree, "main"), 0), "no part of a line is counted");
}

Test(call_tree, bounds_the_memory_for_nodes_and_long_names) {
    BUFFER(line, (size_t)2 << 20);
    for (unsigned i = 0; i < 3000; i++) { /* each node another place of few names */
        bp_buffer_clear(&line);
        (void)bp_buffer_append_text(&line, "a");
        for (unsigned at = 0; at < 100; at++) {
            (void)bp_buffer_printf(&line, ";f%u", (i >> at % 12 & 1) + 2 * (at % 7));
        }
        (void)bp_buffer_printf(&line, ";f%u 1", i);
        cr_assert(eq(int, bp_call_tree_add(&tree, line.data, line.size), BUGPACK_OK));
    }
    for (char name = 'a'; name < 'z'; name++) {
        bp_buffer_clear(&line);
        for (size_t i = 0; i < (1 << 20) - 10; i++) {
            (void)bp_buffer_append_char(&line, name);
        }
        (void)bp_buffer_append_text(&line, " 1");
        cr_assert(eq(int, bp_call_tree_add(&tree, line.data, line.size), BUGPACK_OK));
    }
    cr_assert(eq(int, bp_call_tree_end(&tree), BUGPACK_OK));
    cr_expect(eq(sz, tree.node_count, BP_CALL_TREE_NODE_MAX));
    cr_expect(tree.texts.size < (size_t)8 << 20, "%zu", tree.texts.size);
    cr_expect(eq(u64, bp_call_tree_samples(&tree) + tree.left_samples, 3025));
}
