/*
 * The facts of processes whose files are not what they were.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/process_facts.h"
#include "stress/sampler_check.h"
#include "stress/sampler_child.h"

static bp_process_facts read_facts(pid_t pid) {
    bp_task *task = NULL;
    bp_process_facts facts = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_task_open(pid, false, &task, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_process_facts_read(task, &facts, &error), BUGPACK_OK, error);
    bp_task_close(task);
    return facts;
}

static void copy_program(const char *from, const char *to) {
    bp_buffer bytes;
    bp_buffer_init(&bytes, (size_t)16 << 20);
    CHECK(bp_file_read_at(AT_FDCWD, from, &bytes, NULL) == BUGPACK_OK);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    CHECK(fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size);
    (void)close(fd);
    bp_buffer_release(&bytes);
}

static const bp_loaded_object *find_object(const bp_process_facts *facts, const char *path) {
    for (size_t i = 0; i < facts->object_count; i++) {
        if (strcmp(facts->objects[i].path, path) == 0) {
            return &facts->objects[i];
        }
    }
    CHECK(false && "an object is missing");
    return NULL;
}

/* The facts of a process whose program, once `path`, has gone: never those of what came after. */
static void check_deleted(pid_t pid, const char *path, const char *build_id) {
    bp_process_facts facts = read_facts(pid);
    const bp_loaded_object *object = find_object(&facts, path);
    CHECK(object->deleted);
    /* Only who may checkpoint processes can still read it. */
    CHECK(object->build_id[0] == '\0' || strcmp(object->build_id, build_id) == 0);
    bp_process_facts_release(&facts);
}

/* What stands in the place of a mapped file may hang, or be an impostor. */
static void a_replaced_program_is_deleted_and_not_mistaken(void) {
    char directory[] = "/tmp/bugpack-sampler-XXXXXX";
    char path[64], impostor[80], build_id[65];
    CHECK(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/a\nb (deleted)", directory);
    (void)snprintf(impostor, sizeof impostor, "%s (deleted)", path);
    copy_program("/bin/sleep", path);
    pid_t pid = start_program(path);
    bp_process_facts facts = read_facts(pid);
    const bp_loaded_object *object = find_object(&facts, path);
    CHECK(!object->deleted && strlen(object->build_id) == 40);
    (void)snprintf(build_id, sizeof build_id, "%s", object->build_id);
    bp_process_facts_release(&facts);

    CHECK(unlink(path) == 0);
    check_deleted(pid, path, build_id);
    /* The kernel now calls the old file what the impostor is really called. */
    CHECK(mkfifo(impostor, 0600) == 0);
    check_deleted(pid, path, build_id);
    CHECK(unlink(impostor) == 0);
    copy_program("/proc/self/exe", impostor);
    copy_program("/proc/self/exe", path);
    check_deleted(pid, path, build_id);
    kill_child(pid, true);
    CHECK(unlink(path) == 0 && unlink(impostor) == 0 && rmdir(directory) == 0);
}

int main(void) {
    a_replaced_program_is_deleted_and_not_mistaken();
    return 0;
}
