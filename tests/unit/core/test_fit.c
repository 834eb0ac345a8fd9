/*
 * A zip within its limit, however large its manifest becomes by what is lost.
 */
#include "model/fit.h"
#include "support/archive_file.h"
#include "unit/unit.h"

enum { limit = 65536, entry_bytes = 2000, noise_bytes = 200000 };

static unsigned char noise[noise_bytes]; /* does not compress */

static void fill(void) {
    archive_fill_noise(noise, sizeof noise);
}

TestSuite(fit, .init = fill);

/* A manifest of so many bytes, and more for each entry that lost something. */
typedef struct growing {
    archive_file *file;
    size_t bytes, loss_bytes;
    unsigned loss_count, add_count;
} growing;

static void take(void *context, const bp_fit_loss *loss) {
    growing *it = context;
    (void)loss;
    it->loss_count++;
}

static bugpack_status add(void *context, bugpack_error *error) {
    growing *it = context;
    it->add_count++;
    return archive_file_try(it->file, "manifest.json", noise,
                            it->bytes + it->loss_count * it->loss_bytes, error);
}

static bugpack_status fit(growing *it, archive_file *file, uint64_t max_bytes,
                          bugpack_error *error) {
    char name[32];
    const bp_fit_manifest manifest = {take, add, it};
    archive_file_start(file, 1790000001u * (uint64_t)1000000000u, NULL);
    archive_file_add(file, "metadata.json", "{}", 2);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        archive_file_add(file, name, noise, entry_bytes);
    }
    it->file = file;
    return bp_fit(file->archive, max_bytes, &manifest, error);
}

Test(fit, holds_where_each_loss_costs_more_than_was_thought) {
    static const size_t loss_bytes[] = {0, 100, 500, 1000};
    for (size_t i = 0; i < sizeof loss_bytes / sizeof loss_bytes[0]; i++) {
        CLEANUP(archive_file_end) archive_file file;
        growing it = {.bytes = 1000, .loss_bytes = loss_bytes[i]};
        cr_assert(eq(int, fit(&it, &file, limit, &failure), BUGPACK_OK), "%zu: %s", loss_bytes[i],
                  failure.message);
        archive_file_finish(&file);
        cr_expect(le(u64, (uint64_t)lseek(file.fd, 0, SEEK_END), limit), "%zu", loss_bytes[i]);
        cr_expect(gt(u32, it.loss_count, 0));
        cr_expect(eq(sz, bp_archive_count(file.archive), 42 - it.loss_count));
    }
}

Test(fit, loses_nothing_where_all_of_it_fits) {
    CLEANUP(archive_file_end) archive_file file, whole;
    growing it = {.bytes = 1000, .loss_bytes = 100};
    cr_assert(eq(int, fit(&it, &file, 0, NULL), BUGPACK_OK));
    archive_file_finish(&file);
    growing exact = {.bytes = 1000, .loss_bytes = 100};
    cr_assert(
        eq(int, fit(&exact, &whole, (uint64_t)lseek(file.fd, 0, SEEK_END), NULL), BUGPACK_OK));
    cr_expect(zero(u32, exact.loss_count));
    cr_expect(eq(u32, exact.add_count, 1));
}

Test(fit, fails_where_the_manifest_alone_is_larger) {
    CLEANUP(archive_file_end) archive_file file;
    growing it = {.bytes = limit};
    cr_expect(eq(int, fit(&it, &file, limit, &failure), BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, failure.message,
                 "the report cannot have at most 65536 bytes: what is never left out has 65800"));
    cr_expect(eq(u32, it.loss_count, 40));
}
