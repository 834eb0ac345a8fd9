// A host in C++17 over bugpack.hpp. Its one argument is a directory for reports.
#include <bugpack/bugpack.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace {

int failures = 0;

void check(bool is_true, const char *what) {
    if (!is_true) {
        std::cerr << "failed: " << what << '\n';
        failures++;
    }
}

// Counts its copies that are alive, to see when a callable is destroyed.
struct witness {
    explicit witness(int *alive) : alive_(alive) {
        ++*alive_;
    }
    witness(const witness &other) : alive_(other.alive_) {
        ++*alive_;
    }
    witness &operator=(const witness &) = delete;
    ~witness() {
        --*alive_;
    }
    int *alive_;
};

void use(bugpack::session &session, int *alive) {
    const witness held(alive);
    check(session.provide("session.json", BUGPACK_PROVIDE_JSON,
                          [held](bugpack::writer &out) {
                              return out.write("{\"name\": ") || out.write_json_string("a\"b") ||
                                     out.write("}");
                          }) == BUGPACK_OK,
          "provide_json");
    check(session.provide("session.json", BUGPACK_PROVIDE_TEXT,
                          [](bugpack::writer &) { return 0; }) == BUGPACK_ERR_INVALID,
          "a name that is taken");
    check(session.provide("gone.txt", BUGPACK_PROVIDE_TEXT,
                          [held](bugpack::writer &) { return 0; }) == BUGPACK_OK,
          "provide_text");
    check(*alive == 3, "the session holds what it was given");
    check(session.provide("screenshot.png", BUGPACK_PROVIDE_SCREENSHOT,
                          [](bugpack::writer &out) {
                              static const unsigned char pixel[4] = {};
                              bugpack_picture picture = {};
                              picture.pixels = pixel;
                              picture.width = picture.height = 1;
                              return out.write_picture(picture);
                          }) == BUGPACK_OK,
          "provide_screenshot");
    check(session.unprovide("screenshot.png"), "unprovide the screenshot");
    check(session.unprovide("gone.txt") && !session.unprovide("gone.txt"), "unprovide");
    check(*alive == 2, "unprovide destroys");
#if defined(__cpp_exceptions)
    check(session.provide("thrown.txt", BUGPACK_PROVIDE_TEXT,
                          [](bugpack::writer &) -> int { throw std::runtime_error("x"); }) ==
              BUGPACK_OK,
          "provide_text");
#endif
    session.log(BUGPACK_LEVEL_WARN, std::string_view("display and more").substr(0, 7), "hello");
    session.notify(BUGPACK_LEVEL_WARN, "net", "100 % lost");
    check(session.set_tag("gpu", "none") == BUGPACK_OK, "set_tag");
    check(session.set_tag("g p u", "none") == BUGPACK_ERR_INVALID, "a bad key");
    bugpack::channel channel = session.open_channel(
        "display", {}, [held](bugpack_direction, std::uint32_t, void *bytes, std::size_t count) {
            std::memset(bytes, 'x', count);
            return count;
        });
    check(static_cast<bool>(channel), "open_channel");
    bugpack_error error = BUGPACK_ERROR_INIT;
    check(!session.open_channel("display", {}, {}, &error) && error.status == BUGPACK_ERR_INVALID,
          "a channel of the same name");
    channel.sent(1, "HELLO", "secret");
    channel.close();
    channel.received(2, "LATE", "ignored");
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "usage: wrapper DIRECTORY\n";
        return 2;
    }
    int alive = 0;
    std::atomic<int> done{0}, events{0}, diagnostics{0};
    bugpack::options options;
    options.app_name = "wrapper";
    options.report_dir = argv[1];
    options.sample_window_ms = BUGPACK_OFF;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack::callbacks on;
    on.on_event = [&](const bugpack_event &) { events++; };
    on.on_diagnostic = [&](bugpack_level, std::string_view text) {
        diagnostics += text.find("thrown.txt: the provider threw an exception") != text.npos;
    };
    {
        bugpack::session opened(options, &error, on);
        if (!opened) {
            std::cerr << error.message << '\n';
            return 1;
        }
        bugpack::session session(std::move(opened));
        check(!opened && session, "a session moves");
        opened.log(BUGPACK_LEVEL_FATAL, "", "ignored");
        check(opened.report_async() == BUGPACK_ERR_INVALID, "an empty session");
        use(session, &alive);
        bugpack::report_request request;
        request.description = "from C++";
        check(
            session.report_async(request,
                                 [&, held = witness(&alive)](const bugpack_report_result &result) {
                                     check(result.status == BUGPACK_OK, result.error.message);
                                     done++;
                                 }) == BUGPACK_OK,
            "report_async");
        const unsigned char pixels[2 * 2 * 4] = {};
        bugpack_picture picture = {};
        picture.pixels = pixels;
        picture.width = picture.height = 2;
        request.screenshot = &picture;
        std::atomic<int> released{0};
        const auto release = [&released, held = witness(&alive)] { released++; };
        bugpack::report_result result;
        check(session.report_taking(request, release, result) == BUGPACK_OK && released == 1,
              "report_taking");
        check(session.report_async_taking(request, release) == BUGPACK_OK, "report_async_taking");
        check(session.flush(std::chrono::seconds(60)) == BUGPACK_OK && released == 2, "flush");
        picture.width = 0;
        check(session.report_async_taking(request, release) == BUGPACK_ERR_INVALID && released == 3,
              "a picture that is refused");
        check(session.cancel() == BUGPACK_ERR_NO_TICKET, "cancel");
    }
    check(done == 1 && events >= 2, "callbacks");
#if defined(__cpp_exceptions)
    check(diagnostics >= 1, "an exception fails its artefact");
#endif
    check(alive == 0, "everything was destroyed");
    options.app_name = nullptr;
    check(!bugpack::session(options, &error) && error.status == BUGPACK_ERR_INVALID, "bad options");
    return failures == 0 ? 0 : 1;
}
