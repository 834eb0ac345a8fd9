/*
 * bugpack for C++17: header-only, over the C API, which stays usable beside it through get().
 *
 *     bugpack::options options;
 *     options.app_name = "viewer";
 *     bugpack_error error;
 *     bugpack::session session(options, &error);
 *     if (!session) { std::cerr << error.message << '\n'; }
 *     session.provide("session.json", BUGPACK_PROVIDE_JSON, [&](bugpack::writer &out) {
 *         return out.write(app.state_as_json());
 *     });
 *     session.report_async({}, [](const bugpack_report_result &result) { … });
 *
 * The wrapper throws nothing itself and compiles with -fno-exceptions; allocating a std::function
 * or std::string may throw std::bad_alloc. An exception that leaves a provider fails its artefact;
 * one that leaves another callback is dropped. An empty session (one that did not open, or was
 * moved from) ignores calls or returns BUGPACK_ERR_INVALID, as a NULL session does in C.
 *
 * Callables are owned by the session. One is destroyed after unprovide() has returned true, or when
 * the session has been closed; one that still runs then, because it hangs, is destroyed when it
 * returns. Threads, errors and limits are those of the C functions of the same names.
 */
#ifndef BUGPACK_BUGPACK_HPP
#define BUGPACK_BUGPACK_HPP

#include <bugpack/bugpack.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace bugpack {

/* The structs of the C API, which start with their defaults. */
struct options : bugpack_options {
    options(const bugpack_options &given) : bugpack_options(given) {
    }
    options() : bugpack_options(BUGPACK_OPTIONS_INIT) {
    }
};
struct report_request : bugpack_report_request {
    report_request(const bugpack_report_request &given) : bugpack_report_request(given) {
    }
    report_request() : bugpack_report_request(BUGPACK_REPORT_REQUEST_INIT) {
    }
};
struct report_result : bugpack_report_result {
    report_result() : bugpack_report_result(BUGPACK_REPORT_RESULT_INIT) {
    }
};
struct channel_options : bugpack_channel_options {
    channel_options(const bugpack_channel_options &given) : bugpack_channel_options(given) {
    }
    channel_options() : bugpack_channel_options(BUGPACK_CHANNEL_OPTIONS_INIT) {
    }
};

/* The output of a provider. Each call returns 0, or -1 on failure, for the provider to return. */
class writer {
  public:
    explicit writer(bugpack_writer *out) noexcept : out_(out) {
    }

    int write(std::string_view text) {
        return bugpack_write(out_, text.data(), text.size()) == BUGPACK_OK ? 0 : -1;
    }
    /* A JSON string: quoted, escaped, made valid UTF-8. */
    int write_json_string(std::string_view text) {
        return bugpack_write_json_string(out_, text.data(), text.size()) == BUGPACK_OK ? 0 : -1;
    }
    /* A PNG of the picture. */
    int write_picture(const bugpack_picture &picture) {
        return bugpack_write_picture(out_, &picture) == BUGPACK_OK ? 0 : -1;
    }
    /* Sets the reason of a failure. */
    int fail(const std::string &reason) {
        return bugpack_fail(out_, "%s", reason.c_str());
    }

    /* Marks the artefact as incomplete. */
    void truncate(bool is_missing, const std::string &reason) {
        bugpack_truncate(out_, is_missing, "%s", reason.c_str());
    }
    /* There is nothing to collect. */
    int omit(const std::string &reason) {
        return bugpack_omit(out_, "%s", reason.c_str());
    }

    /* The channel that the report is about; empty if none. */
    std::string_view channel() const {
        const char *name = bugpack_report_channel(out_);
        return name == nullptr ? std::string_view() : std::string_view(name);
    }
    bugpack_writer *get() const noexcept {
        return out_;
    }

  private:
    bugpack_writer *out_;
};

using provider = std::function<int(writer &)>;
using report_done = std::function<void(const bugpack_report_result &)>;
using traffic_filter =
    std::function<std::size_t(bugpack_direction, std::uint32_t, void *, std::size_t)>;

/* Callbacks of a session, on its own threads; see bugpack_options. */
struct callbacks {
    std::function<void(const bugpack_event &)> on_event;
    std::function<void(bugpack_level, std::string_view)> on_diagnostic;
};

namespace detail {

/* Milliseconds for the C calls: at least 0. */
inline std::uint64_t milliseconds(std::chrono::milliseconds time) {
    return time.count() <= 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

/* Calls `run`; returns `on_exception` if it throws. No exception may cross a C frame. */
template <class Result, class Run> Result guarded(Result on_exception, Run &&run) noexcept {
#if defined(__cpp_exceptions)
    try {
        return run();
    } catch (...) {
        return on_exception;
    }
#else
    (void)on_exception;
    return run();
#endif
}

/* A callable that outlives a call in progress: each call holds a reference. */
template <class Callable> struct slot { std::shared_ptr<Callable> callable; };

inline int call_provider(bugpack_writer *out, void *context) {
    const auto callable = static_cast<slot<provider> *>(context)->callable;
    bool has_returned = false;
    const int result = guarded(-1, [&] {
        writer to(out);
        const int returned = (*callable)(to);
        has_returned = true;
        return returned;
    });
    return has_returned ? result : bugpack_fail(out, "the provider threw an exception");
}

inline std::size_t call_filter(bugpack_direction direction, std::uint32_t type, void *bytes,
                               std::size_t byte_count, void *context) {
    const auto callable = static_cast<slot<traffic_filter> *>(context)->callable;
    return guarded(std::size_t(0), [&] { return (*callable)(direction, type, bytes, byte_count); });
}

inline void call_done(const bugpack_report_result *result, void *context) {
    const std::unique_ptr<report_done> done(static_cast<report_done *>(context));
    guarded(0, [&] { return (*done)(*result), 0; });
}

inline void call_release(void *context) {
    const std::unique_ptr<std::function<void()>> release(
        static_cast<std::function<void()> *>(context));
    guarded(0, [&] { return *release ? (*release)(), 0 : 0; });
}

inline void call_event(const bugpack_event *event, void *context) {
    guarded(0, [&] { return static_cast<callbacks *>(context)->on_event(*event), 0; });
}

inline void call_diagnostic(bugpack_level level, const char *text, void *context) {
    guarded(0, [&] { return static_cast<callbacks *>(context)->on_diagnostic(level, text), 0; });
}

#if defined(__cpp_exceptions)
/* What record_uncaught() needs: the session, and the handler that was there before. */
inline std::atomic<bugpack_session *> uncaught_session{nullptr};
inline std::atomic<std::terminate_handler> uncaught_next{nullptr};

inline void explain_uncaught(const std::exception_ptr &uncaught) noexcept {
    const std::type_info *const type = abi::__cxa_current_exception_type();
    const char *const name = type == nullptr ? "unknown" : type->name();
    bugpack_session *const session = uncaught_session.load();
    try {
        std::rethrow_exception(uncaught);
    } catch (const std::exception &thrown) {
        bugpack_crash_explain(session, name, thrown.what());
    } catch (...) {
        bugpack_crash_explain(session, name, nullptr);
    }
}

[[noreturn]] inline void terminate() noexcept {
    const std::terminate_handler next = uncaught_next.load();
    const std::exception_ptr uncaught = std::current_exception();
    if (uncaught) {
        explain_uncaught(uncaught);
    }
    if (next != nullptr) {
        next();
    }
    std::abort();
}
#endif

/* The C session has pointers to this, so it stays when the session object moves. */
struct owned {
    callbacks on;
    std::mutex mutex; /* of what follows */
    std::map<std::string, std::unique_ptr<slot<provider>>> providers;
    std::vector<std::unique_ptr<slot<traffic_filter>>> filters;
};

} /* namespace detail */

/* A channel; the session owns it. Copies are the same channel. */
class channel {
  public:
    channel() noexcept = default;
    explicit channel(bugpack_channel *handle) noexcept : handle_(handle) {
    }

    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }
    bugpack_channel *get() const noexcept {
        return handle_;
    }

    void traffic(bugpack_direction direction, std::uint32_t type, const char *type_name,
                 const void *bytes, std::size_t byte_count) {
        bugpack_traffic(handle_, direction, type, type_name, bytes, byte_count);
    }
    /* Ends the channel; its filter is not called any more. */
    void close() {
        bugpack_channel_close(handle_);
    }
    void sent(std::uint32_t type, const char *type_name, std::string_view bytes) {
        traffic(BUGPACK_SENT, type, type_name, bytes.data(), bytes.size());
    }
    void received(std::uint32_t type, const char *type_name, std::string_view bytes) {
        traffic(BUGPACK_RECEIVED, type, type_name, bytes.data(), bytes.size());
    }

  private:
    bugpack_channel *handle_ = nullptr;
};

/* A watchdog (bugpack/watchdog.h); the session owns it. Copies are the same watchdog. */
class watchdog {
  public:
    watchdog() noexcept = default;
    explicit watchdog(bugpack_watchdog *handle) noexcept : handle_(handle) {
    }

    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }
    bugpack_watchdog *get() const noexcept {
        return handle_;
    }

    void beat() noexcept {
        bugpack_watchdog_beat(handle_);
    }
    void pause() noexcept {
        bugpack_watchdog_pause(handle_);
    }
    /* Frees it: no copy may be used any more. */
    void close() {
        bugpack_watchdog_close(handle_);
        handle_ = nullptr;
    }

  private:
    bugpack_watchdog *handle_ = nullptr;
};

/* A session: opened by its constructor, closed by its destructor. Movable, not copyable. */
class session {
  public:
    session() noexcept = default;

    /* Opens a session. Check it with operator bool; `error` says why it is empty. */
    explicit session(const options &given, bugpack_error *error = nullptr, callbacks on = {})
        : owned_(std::make_unique<detail::owned>()) {
        bugpack_options with = given;
        owned_->on = std::move(on);
        if (owned_->on.on_event) {
            with.on_event = detail::call_event;
            with.on_event_context = &owned_->on;
        }
        if (owned_->on.on_diagnostic) {
            with.on_diagnostic = detail::call_diagnostic;
            with.on_diagnostic_context = &owned_->on;
        }
        if (bugpack_open(&with, &handle_, error) != BUGPACK_OK) {
            handle_ = nullptr;
        }
    }

    session(session &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owned_(std::move(other.owned_)) {
    }
    session &operator=(session &&other) noexcept {
        if (this != &other) {
            close();
            handle_ = std::exchange(other.handle_, nullptr);
            owned_ = std::move(other.owned_);
        }
        return *this;
    }
    session(const session &) = delete;
    session &operator=(const session &) = delete;
    ~session() {
        close();
    }

    explicit operator bool() const noexcept {
        return handle_ != nullptr;
    }
    bugpack_session *get() const noexcept {
        return handle_;
    }

    /* Closes early. Inside a callback of the session nothing is closed, and the callables leak. */
    void close() noexcept {
        if (handle_ == nullptr) {
            return;
        }
        bugpack_close(handle_);
        if (bugpack_flush(handle_, 0, nullptr) != BUGPACK_ERR_CLOSED) {
            (void)owned_.release();
        }
        handle_ = nullptr;
        owned_.reset();
    }

    void log(bugpack_level level, std::string_view channel, std::string_view message) {
        if (bugpack_log_wants(handle_, level)) {
            /* With some bytes over the limit, so that the record says it was cut. */
            char name[BUGPACK_CHANNEL_MAX_BYTES + 5];
            name[channel.copy(name, sizeof name - 1)] = '\0';
            bugpack_log_bytes(handle_, level, channel.empty() ? nullptr : name, message.data(),
                              message.size());
        }
    }
    void notify(bugpack_level level, const std::string &source, const std::string &text) {
        bugpack_notify(handle_, level, source.c_str(), nullptr, "%s", text.c_str());
    }
    /* Returns the ticket for report_request::retained. */
    std::uint64_t notify_retain(bugpack_level level, const std::string &source,
                                const std::string &text) {
        std::uint64_t retained = 0;
        bugpack_notify(handle_, level, source.c_str(), &retained, "%s", text.c_str());
        return retained;
    }

    bugpack_status set_tag(const std::string &key, const std::string &value,
                           bugpack_error *error = nullptr) {
        return bugpack_set_tag(handle_, key.c_str(), value.c_str(), error);
    }
    bugpack_status remove_tag(const std::string &key, bugpack_error *error = nullptr) {
        return bugpack_set_tag(handle_, key.c_str(), nullptr, error);
    }

    bugpack_status locate_recorder(bugpack_recorder_location &location,
                                   bugpack_error *error = nullptr) {
        return bugpack_recorder_locate(handle_, &location, error);
    }

    /* A provider of BUGPACK_PROVIDE_SCREENSHOT, named "screenshot.png", calls
     * writer::write_picture. */
    bugpack_status provide(const std::string &name, bugpack_provider_kind kind, provider fill,
                           bugpack_error *error = nullptr) {
        if (handle_ == nullptr) {
            return bugpack_provide(nullptr, name.c_str(), kind, detail::call_provider, nullptr,
                                   error);
        }
        auto held = std::make_unique<detail::slot<provider>>();
        held->callable = std::make_shared<provider>(std::move(fill));
        const std::lock_guard<std::mutex> lock(owned_->mutex);
        const bugpack_status status =
            bugpack_provide(handle_, name.c_str(), kind, detail::call_provider, held.get(), error);
        if (status == BUGPACK_OK) {
            owned_->providers.insert_or_assign(name, std::move(held));
        }
        return status;
    }
    /* True: the callable has been destroyed. */
    bool unprovide(const std::string &name) {
        if (handle_ == nullptr) {
            return false;
        }
        const detail::slot<provider> *before = find(name);
        const bool is_gone = bugpack_unprovide(handle_, name.c_str());
        const std::lock_guard<std::mutex> lock(owned_->mutex);
        const auto at = owned_->providers.find(name);
        if (is_gone && at != owned_->providers.end() && at->second.get() == before) {
            owned_->providers.erase(at); /* and not one that another thread has just provided */
        }
        return is_gone;
    }

    channel open_channel(const std::string &name, const channel_options &given = {},
                         traffic_filter filter = {}, bugpack_error *error = nullptr) {
        if (handle_ == nullptr) {
            return channel();
        }
        bugpack_channel_options with = given;
        bugpack_channel *handle = nullptr;
        auto held = std::make_unique<detail::slot<traffic_filter>>();
        if (filter) {
            held->callable = std::make_shared<traffic_filter>(std::move(filter));
            with.filter = detail::call_filter;
            with.filter_context = held.get();
        }
        const std::lock_guard<std::mutex> lock(owned_->mutex);
        owned_->filters.push_back(std::move(held));
        if (bugpack_channel_open(handle_, name.c_str(), &with, &handle, error) != BUGPACK_OK) {
            owned_->filters.pop_back();
            return channel();
        }
        return channel(handle);
    }

    /* `result` has the error, too. */
    bugpack_status report(const report_request &request, bugpack_report_result &result) {
        return bugpack_report(handle_, &request, &result, nullptr);
    }
    bugpack_status report_async(const report_request &request = {}, report_done done = {},
                                bugpack_error *error = nullptr) {
        if (!done) {
            return bugpack_report_async(handle_, &request, nullptr, nullptr, error);
        }
        auto held = std::make_unique<report_done>(std::move(done));
        const bugpack_status status =
            bugpack_report_async(handle_, &request, detail::call_done, held.get(), error);
        if (status == BUGPACK_OK) {
            (void)held.release(); /* call_done destroys it, perhaps already */
        }
        return status;
    }
    /* The same without a copy of the pixels of `request.screenshot`, which must stay as they are
     * until `release` is called; when and on which thread, bugpack_screenshot_release_callback
     * says. */
    bugpack_status report_taking(report_request request, std::function<void()> release,
                                 bugpack_report_result &result) {
        auto held = hand_over(request, std::move(release));
        const bugpack_status status = report(request, result);
        (void)held.release(); /* call_release has destroyed it */
        return status;
    }
    bugpack_status report_async_taking(report_request request, std::function<void()> release,
                                       report_done done = {}, bugpack_error *error = nullptr) {
        auto held = hand_over(request, std::move(release));
        const bugpack_status status = report_async(request, std::move(done), error);
        (void)held.release(); /* call_release destroys it, perhaps already */
        return status;
    }
    bugpack_status cancel(std::uint64_t ticket = 0, bugpack_error *error = nullptr) {
        return bugpack_cancel(handle_, ticket, error);
    }
    bugpack_status disconnect(const std::string &channel, const std::string &error_text,
                              const bugpack_disconnect_details *details = nullptr,
                              bugpack_error *error = nullptr) {
        return bugpack_disconnect(handle_, channel.c_str(), error_text.c_str(), details, error);
    }
    /* Empty where it failed, as `error` says. */
    watchdog open_watchdog(const std::string &name, std::chrono::milliseconds limit,
                           bugpack_error *error = nullptr) {
        bugpack_watchdog *opened = nullptr;
        const bugpack_status status = bugpack_watchdog_open(
            handle_, name.c_str(), detail::milliseconds(limit), &opened, error);
        return watchdog(status == BUGPACK_OK ? opened : nullptr);
    }
    /* Takes a report when the condition becomes true (bugpack/condition.h). */
    bugpack_status add_condition(const std::string &condition, bugpack_error *error = nullptr) {
        return bugpack_condition_add(handle_, condition.c_str(), error);
    }
    /* Records what the process dies of, until close() (bugpack/crash.h). */
    bugpack_status install_crash_handler(bugpack_error *error = nullptr) {
        return bugpack_crash_handler_install(handle_, error);
    }
#if defined(__cpp_exceptions)
    /* From now on std::terminate records the type and what() of an uncaught exception for that
     * report, and then calls the handler that was there before. Of one session at a time; after
     * install_crash_handler(). */
    void record_uncaught() noexcept {
        detail::uncaught_session.store(handle_);
        if (std::get_terminate() != detail::terminate) {
            detail::uncaught_next.store(std::set_terminate(detail::terminate));
        }
    }
#endif
    bugpack_status flush(std::chrono::milliseconds timeout, bugpack_error *error = nullptr) {
        return bugpack_flush(handle_, detail::milliseconds(timeout), error);
    }

    void gap(const std::string &key) {
        bugpack_gap(handle_, key.c_str());
    }
    /* `state` is called before this returns, and only if the gap leads to a report. */
    void gap(const std::string &key, provider state) {
        detail::slot<provider> held{std::make_shared<provider>(std::move(state))};
        bugpack_gap_with_state(handle_, key.c_str(), detail::call_provider, &held);
    }
    void gap_unknown(const std::string &channel, std::uint64_t opcode, std::string_view message) {
        bugpack_gap_unknown(handle_, channel.c_str(), opcode, message.data(), message.size());
    }

  private:
    static std::unique_ptr<std::function<void()>> hand_over(report_request &request,
                                                            std::function<void()> release) {
        auto held = std::make_unique<std::function<void()>>(std::move(release));
        request.screenshot_context = held.get();
        request.screenshot_release = detail::call_release;
        return held;
    }
    const detail::slot<provider> *find(const std::string &name) {
        const std::lock_guard<std::mutex> lock(owned_->mutex);
        const auto at = owned_->providers.find(name);
        return at == owned_->providers.end() ? nullptr : at->second.get();
    }

    bugpack_session *handle_ = nullptr;
    std::unique_ptr<detail::owned> owned_;
};

/* So that an overflow of the calling thread's stack is recorded, too. */
inline bugpack_status init_crash_thread(bugpack_error *error = nullptr) noexcept {
    return bugpack_crash_thread_init(error);
}

} /* namespace bugpack */

#endif
