/*
 * The files that a process has mapped as code, from /proc/<pid>/maps.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/facts_private.h"
#include "platform/linux/proc_maps.h"
#include "platform/linux/proc_scan.h"

static const size_t maps_max_bytes = (size_t)16 * 1024 * 1024;
static const size_t object_max = 4096;

/* The mappings of files, in the order of their address; slices of the text of maps. */
typedef struct map_list {
    bp_proc_map *maps;
    size_t count, capacity;
} map_list;

static bool push_map(map_list *list, const bp_proc_map *map) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 256 : list->capacity * 2;
        bp_proc_map *maps = realloc(list->maps, capacity * sizeof *maps);
        if (maps == NULL) {
            return false;
        }
        list->maps = maps;
        list->capacity = capacity;
    }
    list->maps[list->count++] = *map;
    return true;
}

static int compare_values(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_files(const bp_proc_map *a, const bp_proc_map *b) {
    int order = compare_values(a->inode, b->inode);
    order = order != 0 ? order : compare_values(a->device_major, b->device_major);
    return order != 0 ? order : compare_values(a->device_minor, b->device_minor);
}

/* By file, and then by address: the first mapping of each file is its lowest. */
static int compare_maps(const void *a_map, const void *b_map) {
    const bp_proc_map *a = a_map;
    const bp_proc_map *b = b_map;
    int order = compare_files(a, b);
    return order != 0 ? order : compare_values(a->start, b->start);
}

static int compare_starts(const void *a_map, const void *b_map) {
    const bp_proc_map *a = a_map;
    const bp_proc_map *b = b_map;
    return compare_values(a->start, b->start);
}

/* Leaves one map for each file that has an executable mapping, the lowest, ascending by address. */
static void keep_objects(map_list *list) {
    if (list->count == 0) {
        return;
    }
    qsort(list->maps, list->count, sizeof *list->maps, compare_maps);
    size_t kept = 0;
    for (size_t first = 0, end; first < list->count; first = end) {
        bool is_executable = false;
        for (end = first;
             end < list->count && compare_files(&list->maps[first], &list->maps[end]) == 0; end++) {
            is_executable = is_executable || list->maps[end].is_executable;
        }
        if (is_executable) {
            list->maps[kept++] = list->maps[first];
        }
    }
    list->count = kept;
    qsort(list->maps, list->count, sizeof *list->maps, compare_starts);
}

/* Collects the mappings of files; what is no file ("[heap]", "[vdso]") has no inode. */
static bool parse_maps(const bp_buffer *text, map_list *list) {
    bp_proc_scan scan = {text->data, text->data + text->size};
    bp_proc_scan line;
    while (bp_proc_take_line(&scan, &line)) {
        bp_proc_map map;
        if (bp_proc_parse_map(line.next, (size_t)(line.end - line.next), &map) && map.inode != 0 &&
            map.path_bytes > 0 && map.path[0] == '/' && !push_map(list, &map)) {
            return false;
        }
    }
    return true;
}

/*
 * Fills one object. A name that ends in " (deleted)" may be the real name of a file that is there,
 * so the whole name is tried first. In a recording no file is looked for.
 */
static bool fill_object(const bp_task *task, int root_fd, const bp_proc_map *map,
                        bp_loaded_object *object) {
    *object = (bp_loaded_object){.address = map->start, .path = malloc(map->path_bytes + 1)};
    if (object->path == NULL) {
        return false;
    }
    size_t length = bp_proc_unescape_path(map->path, map->path_bytes, object->path);
    bool is_there = false;
    if (!task->root.is_recording) {
        bp_mapped_file file = {.path = object->path,
                               .device_major = map->device_major,
                               .device_minor = map->device_minor,
                               .inode = map->inode,
                               .start = map->start,
                               .end = map->end};
        bp_facts_read_build_id(task, root_fd, &file, object->build_id, &is_there);
    }
    size_t deleted_length = bp_proc_deleted_path_length(object->path, length);
    if (deleted_length > 0 && !is_there) {
        object->path[deleted_length] = '\0';
        object->deleted = true;
    }
    return true;
}

static bool fill_objects(const bp_task *task, const map_list *list, bp_process_facts *facts) {
    size_t count = list->count < object_max ? list->count : object_max;
    facts->objects = calloc(count > 0 ? count : 1, sizeof *facts->objects);
    if (facts->objects == NULL) {
        return false;
    }
    /* Another process may live in another mount namespace: its paths are looked up in its root. */
    int root_fd = -1;
    if (!task->is_own && !task->root.is_recording) {
        root_fd = openat(task->directory_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    bool is_whole = true;
    for (size_t i = 0; i < count && is_whole; i++) {
        is_whole = fill_object(task, root_fd, &list->maps[i], &facts->objects[i]);
        facts->object_count += is_whole;
    }
    if (root_fd >= 0) {
        (void)close(root_fd);
    }
    facts->objects_known = is_whole;
    if (list->count > object_max) {
        bp_facts_note(facts, "further loaded objects", "over the limit of 4,096");
    }
    return is_whole;
}

bugpack_status bp_facts_read_objects(const bp_task *task, bp_process_facts *facts,
                                     bugpack_error *error) {
    bp_buffer text;
    bp_buffer_init(&text, maps_max_bytes);
    map_list list = {0};
    bugpack_error read_error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_file_read_at(task->directory_fd, "maps", &text, &read_error);
    if (text.status != BUGPACK_OK && !text.is_over_limit) {
        status = bp_fail_memory(error, "list the loaded objects");
        goto out;
    }
    if (status != BUGPACK_OK && text.size == 0) {
        bp_facts_deny(facts, "loaded objects", read_error.system_errno);
        status = BUGPACK_OK;
        goto out;
    }
    if (status != BUGPACK_OK) {
        bp_facts_note(facts, "further loaded objects", "over 16 MiB of mappings");
    }
    status = BUGPACK_OK;
    /* A kernel thread and a zombie have no mappings, and that says nothing about objects. */
    if (text.size == 0) {
        goto out;
    }
    if (!parse_maps(&text, &list)) {
        status = bp_fail_memory(error, "list the loaded objects");
        goto out;
    }
    keep_objects(&list);
    if (!fill_objects(task, &list, facts)) {
        status = bp_fail_memory(error, "list the loaded objects");
    }
out:
    free(list.maps);
    bp_buffer_release(&text);
    return status;
}
