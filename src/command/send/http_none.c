#include "base/status.h"
#include "send/http.h"

bugpack_status bp_http_send(const bp_http_request *request, bp_http_answer *ret_answer,
                            bugpack_error *error) {
    (void)request;
    *ret_answer = (bp_http_answer){.status = 0};
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "this bugpack was built without libcurl: it sends only to directories");
}
