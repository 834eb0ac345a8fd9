#include "probe/session_copies.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/mapped_files.h"
#include "probe/remote_memory.h"
#include "ring/frame.h"
#include "ring/ring_file.h"

enum { header_max = 64, note_bytes_max = 65536, piece_bytes = 1 << 20, attempt_max = 3 };

/* A process may claim any number of tables. */
enum { table_max = 256 };

static const uint64_t file_bytes_max = (uint64_t)1 << 20;
static const uint64_t rings_bytes_max = (uint64_t)4 << 30;

struct copier {
    pid_t pid;
    int dir_fd;
    const bp_cancel_token *token;
    bp_anchor anchor; /* a table, as it was copied */
    uint64_t anchor_address;
    char session_id[BP_ID_BYTES]; /* of the session that is copied; "": none was found yet */
    uint64_t ring_bytes;
    size_t capacity;      /* of the copies' items */
    unsigned char *piece; /* piece_bytes */
    bp_session_copies copies;
};

void bp_session_copies_release(bp_session_copies *copies) {
    for (size_t i = 0; i < copies->count; i++) {
        bp_temp_file_release(&copies->items[i].file);
    }
    if (copies->items != NULL) {
        bp_temp_file_release(&copies->rings);
    }
    free(copies->items);
    *copies = (bp_session_copies){.count = 0};
}

static bool read_memory(const struct copier *copier, uint64_t address, void *out, size_t bytes) {
    return address <= (uint64_t)INT64_MAX - bytes &&
           bp_remote_read_one(copier->pid, address, out, bytes) == 0;
}

static uint32_t word_at(const unsigned char *bytes, size_t at) {
    uint32_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* Finds the note of bugpack in a segment of notes: names and descriptors are padded to 4. */
static bool find_note(const unsigned char *bytes, size_t byte_count, uint64_t address,
                      uint64_t *ret_anchor) {
    static const char name[8] = "bugpack";
    for (size_t at = 0; byte_count - at >= 12;) {
        uint64_t name_bytes = word_at(bytes, at);
        uint64_t text_bytes = word_at(bytes, at + 4);
        uint64_t text_at = at + 12 + ((name_bytes + 3) & ~(uint64_t)3);
        uint64_t next = text_at + ((text_bytes + 3) & ~(uint64_t)3);
        if (text_at > byte_count || next > byte_count) {
            return false;
        }
        if (name_bytes == sizeof name && text_bytes == sizeof(uint64_t) &&
            word_at(bytes, at + 8) == BP_ANCHOR_NOTE_TYPE &&
            memcmp(bytes + at + 12, name, sizeof name) == 0) {
            uint64_t distance;
            memcpy(&distance, bytes + text_at, sizeof distance);
            *ret_anchor = address + text_at + distance; /* may be negative: it wraps */
            return true;
        }
        at = (size_t)next;
    }
    return false;
}

/* The addresses in an image count from where its first byte would be; see elf(5). */
static bool find_in_image(struct copier *copier, uint64_t image, uint64_t *ret_anchor) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[header_max];
    bool is_found = false, is_placed = false;
    uint64_t base = 0;
    if (!read_memory(copier, image, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof segments[0] || header.e_phnum > header_max ||
        header.e_phoff > note_bytes_max ||
        !read_memory(copier, image + header.e_phoff, segments,
                     header.e_phnum * sizeof segments[0])) {
        return false;
    }
    for (size_t i = 0; i < header.e_phnum && !is_placed; i++) {
        is_placed = segments[i].p_type == PT_LOAD;
        base = is_placed ? image - (segments[i].p_vaddr - segments[i].p_offset) : base;
    }
    for (size_t i = 0; is_placed && i < header.e_phnum && !is_found; i++) {
        uint64_t address = base + segments[i].p_vaddr;
        size_t bytes = (size_t)segments[i].p_memsz;
        is_found = segments[i].p_type == PT_NOTE && segments[i].p_memsz <= note_bytes_max &&
                   read_memory(copier, address, copier->piece, bytes) &&
                   find_note(copier->piece, bytes, address, ret_anchor);
    }
    return is_found;
}

static bool read_anchor(struct copier *copier, uint64_t address) {
    bp_anchor *anchor = &copier->anchor;
    bool is_read = read_memory(copier, address, anchor, sizeof *anchor) &&
                   anchor->magic == BP_ANCHOR_MAGIC && anchor->version == BP_ANCHOR_VERSION &&
                   anchor->entry_bytes == sizeof anchor->entries[0] &&
                   anchor->entry_count == BP_ANCHOR_ENTRY_COUNT;
    copier->anchor_address = address;
    return is_read;
}

static bool is_in_use(const bp_anchor_entry *entry) {
    return entry->sequence % 2 == 0 && entry->address != 0 && entry->mapped_bytes != 0 &&
           memchr(entry->session_id, '\0', sizeof entry->session_id) != NULL;
}

/* Whether the entry is still what was copied: else its memory is somebody else's by now. */
static bool is_unchanged(const struct copier *copier, const bp_anchor_entry *entry) {
    bp_anchor_entry again;
    uint64_t address =
        copier->anchor_address + (uint64_t)((const char *)entry - (const char *)&copier->anchor);
    return read_memory(copier, address, &again, sizeof again) &&
           memcmp(&again, entry, sizeof again) == 0;
}

/* 0, or an errno. */
static int write_at(int fd, const void *bytes, size_t byte_count, uint64_t offset) {
    return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? errno
                                                  : bp_file_write_all(fd, bytes, byte_count);
}

/* 0, or an errno: EFAULT when the process has no such memory. */
static int copy_range(struct copier *copier, uint64_t address, uint64_t byte_count, int fd,
                      uint64_t offset) {
    int result = 0;
    while (result == 0 && byte_count > 0) {
        size_t part = byte_count < piece_bytes ? (size_t)byte_count : piece_bytes;
        if (bp_cancel_check(copier->token, NULL) != BUGPACK_OK) {
            return ECANCELED;
        }
        result = read_memory(copier, address, copier->piece, part) ? 0 : EFAULT;
        if (result == 0) {
            result = write_at(fd, copier->piece, part, offset);
        }
        address += part;
        offset += part;
        byte_count -= part;
    }
    return result;
}

/* What of the data area is in use: in two parts where it wraps. */
static int copy_records(struct copier *copier, const bp_anchor_entry *entry,
                        const bp_frame_page *page, uint64_t base) {
    int fd = copier->copies.rings.fd;
    uint64_t to = base + BP_FRAME_DATA_START;
    uint64_t data = entry->address + BP_FRAME_DATA_START;
    uint64_t first = page->tail % page->capacity;
    uint64_t used = page->head - page->tail;
    uint64_t part = used < page->capacity - first ? used : page->capacity - first;
    if (!bp_ring_file_has_extent(page)) {
        return copy_range(copier, data, page->capacity, fd, to);
    }
    int result = copy_range(copier, data + first, part, fd, to + first);
    return result == 0 ? copy_range(copier, data, used - part, fd, to) : result;
}

static bool read_page(const struct copier *copier, const bp_anchor_entry *entry,
                      bp_frame_page *page) {
    return read_memory(copier, entry->address, page, sizeof *page) &&
           page->magic == BP_FRAME_MAGIC && page->version == BP_FRAME_VERSION &&
           page->capacity >= BP_FRAME_CAPACITY_MIN && page->capacity <= BP_FRAME_CAPACITY_MAX &&
           page->capacity <= entry->mapped_bytes - BP_FRAME_DATA_START;
}

/*
 * The header of the copy counts the records that were there before and after: what the writers took
 * away meanwhile is not, and may be torn. EAGAIN: nothing of it was there all the while.
 */
static int copy_ring(struct copier *copier, const bp_anchor_entry *entry, bp_copied_file *copied) {
    bp_session_copies *copies = &copier->copies;
    bp_frame_page page, after;
    if (entry->mapped_bytes <= BP_FRAME_DATA_START || !read_page(copier, entry, &page)) {
        return EFAULT;
    }
    /* What a failed attempt has left must not be taken for records: it is passed over. */
    copied->base = copies->rings_bytes;
    copies->rings_bytes += BP_FRAME_DATA_START + ((page.capacity + 7) & ~(uint64_t)7);
    int result = copy_records(copier, entry, &page, copied->base);
    if (result != 0) {
        return result;
    }
    if (!read_page(copier, entry, &after) || after.seed != page.seed ||
        !is_unchanged(copier, entry)) {
        return EFAULT;
    }
    bool has_extent = bp_ring_file_has_extent(&page) && bp_ring_file_has_extent(&after);
    if (has_extent && after.tail > page.head) {
        return EAGAIN;
    }
    page.tail = has_extent && after.tail > page.tail ? after.tail : page.tail;
    copies->used_bytes += has_extent ? page.head - page.tail : page.capacity;
    return write_at(copies->rings.fd, &page, sizeof page, copied->base);
}

static int copy_file(struct copier *copier, const bp_anchor_entry *entry, bp_copied_file *copied) {
    bp_anchor_file file;
    uint64_t content = entry->address + sizeof file;
    if (entry->mapped_bytes < sizeof file || entry->mapped_bytes > file_bytes_max ||
        !read_memory(copier, entry->address, &file, sizeof file) ||
        memchr(file.name, '\0', sizeof file.name) == NULL) {
        return EFAULT;
    }
    memcpy(copied->name, file.name, sizeof copied->name);
    int result = copy_range(copier, content, entry->mapped_bytes - sizeof file, copied->file.fd, 0);
    return result == 0 && !is_unchanged(copier, entry) ? EFAULT : result;
}

/* A ring or a file that cannot be read costs itself. */
static bugpack_status copy_entry(struct copier *copier, const bp_anchor_entry *entry,
                                 bugpack_error *error) {
    bp_session_copies *copies = &copier->copies;
    bp_copied_file copied = {
        .kind = entry->kind, .number = entry->number, .file = BP_TEMP_FILE_INIT};
    int result = EAGAIN;
    if (entry->kind == BP_ANCHOR_FILE) {
        bugpack_status status = bp_temp_file_open(&copied.file, copier->dir_fd, 0, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        result = copy_file(copier, entry, &copied);
    } else {
        for (int attempt = 0; result == EAGAIN && attempt < attempt_max; attempt++) {
            result = copy_ring(copier, entry, &copied);
        }
    }
    if (result == 0) {
        copies->ring_count += entry->kind == BP_ANCHOR_FILE ? 0 : 1;
        copies->items[copies->count++] = copied;
        return BUGPACK_OK;
    }
    bp_temp_file_release(&copied.file);
    copies->unread_count++;
    return result == EFAULT || result == EAGAIN
               ? BUGPACK_OK
               : bp_fail_errno(error, result, "cannot copy the rings of a process");
}

/* What an entry of this session names, as long as there is room for it. */
static bugpack_status copy_wanted(struct copier *copier, const bp_anchor_entry *entry,
                                  bugpack_error *error) {
    bp_session_copies *copies = &copier->copies;
    bool is_ring = entry->kind <= BP_RING_KIND_PINS && entry->kind >= BP_RING_KIND_LOG;
    bool has_room = entry->mapped_bytes <= rings_bytes_max - copier->ring_bytes;
    if (entry->kind != BP_ANCHOR_FILE && (!is_ring || !has_room)) {
        return BUGPACK_OK;
    }
    bool is_first = copies->items == NULL;
    if (!bp_array_reserve(&copies->items, copies->count, &copier->capacity)) {
        return bp_fail_memory(error, "copy the rings of a process");
    }
    bugpack_status status =
        is_first ? bp_temp_file_open(&copies->rings, copier->dir_fd, 0, error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return status;
    }
    copier->ring_bytes += is_ring ? entry->mapped_bytes : 0;
    return copy_entry(copier, entry, error);
}

/* The first session that a table lists counts. */
static bugpack_status copy_table(struct copier *copier, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < BP_ANCHOR_ENTRY_COUNT; i++) {
        const bp_anchor_entry *entry = &copier->anchor.entries[i];
        if (!is_in_use(entry)) {
            continue;
        }
        if (copier->session_id[0] == '\0') {
            memcpy(copier->session_id, entry->session_id, sizeof copier->session_id);
        }
        if (strcmp(entry->session_id, copier->session_id) == 0) {
            status = copy_wanted(copier, entry, error);
        }
    }
    return status;
}

/* The first table was read. */
static bugpack_status copy_session(struct copier *copier, bugpack_error *error) {
    bugpack_status status = copy_table(copier, error);
    for (unsigned i = 1; status == BUGPACK_OK && i < table_max && copier->anchor.next != 0 &&
                         read_anchor(copier, copier->anchor.next);
         i++) {
        status = copy_table(copier, error);
    }
    return status;
}

/* Each image with a library has an anchor: the first with a session counts. */
static bugpack_status search(struct copier *copier, const bp_mapped_files *files,
                             bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < files->count; i++) {
        uint64_t anchor;
        if (find_in_image(copier, files->items[i].address, &anchor) &&
            read_anchor(copier, anchor)) {
            status = copy_session(copier, error);
            if (status != BUGPACK_OK ||
                copier->copies.ring_count + copier->copies.unread_count > 0) {
                break;
            }
            bp_session_copies_release(&copier->copies);
            copier->session_id[0] = '\0';
            copier->capacity = 0;
        }
    }
    return status;
}

/* time_namespaces(7); an old kernel has none. False where it cannot be known. */
static bool is_clock_ours(int process_fd) {
    struct stat ours, theirs;
    bool is_there = stat("/proc/self/ns/time", &ours) == 0;
    return fstatat(process_fd, "ns/time", &theirs, 0) == 0
               ? is_there && ours.st_ino == theirs.st_ino
               : !is_there && errno == ENOENT;
}

bugpack_status bp_session_copies_take(pid_t pid, int dir_fd, const bp_cancel_token *token,
                                      bp_session_copies *ret_copies, bugpack_error *error) {
    bp_mapped_files files = {.count = 0};
    struct copier *copier = calloc(1, sizeof *copier);
    unsigned char *piece = malloc(piece_bytes);
    int process_fd = bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%d", (int)pid);
    int result = process_fd < 0 ? ESRCH : bp_mapped_files_read(process_fd, &files);
    bugpack_status status = BUGPACK_OK;
    if (copier == NULL || piece == NULL || result == ENOMEM) {
        status = bp_fail_memory(error, "copy the rings of a process");
        goto out;
    }
    copier->pid = pid;
    copier->dir_fd = dir_fd;
    copier->token = token;
    copier->piece = piece;
    status = search(copier, &files, error);
    if (status != BUGPACK_OK) {
        bp_session_copies_release(&copier->copies);
        goto out;
    }
    copier->copies.is_clock_ours = is_clock_ours(process_fd);
    *ret_copies = copier->copies;
out:
    bp_mapped_files_release(&files);
    bp_file_close(process_fd);
    free(copier);
    free(piece);
    return status;
}
