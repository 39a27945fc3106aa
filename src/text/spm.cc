/* SPDX-License-Identifier: Apache-2.0
 *
 * The only C++ of the project: SentencePiece's processor for text/spm.h. Everything it may throw ends here as a reason. */
#include "text/spm.h"

#include <sentencepiece_processor.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

struct reel_spm {
    sentencepiece::SentencePieceProcessor processor;
};

static void tell(char *reason, const std::string &text)
{
    (void)std::snprintf(reason, REEL_SPM_REASON_MAX, "%s", text.c_str());
}

reel_spm *reel_spm_open(const char *bytes, size_t n, char reason[REEL_SPM_REASON_MAX])
{
    try {
        auto spm = std::make_unique<reel_spm>();
        const auto status = spm->processor.LoadFromSerializedProto(absl::string_view(bytes, n));
        if (status.ok()) return spm.release();
        tell(reason, status.ToString());
    } catch (const std::exception &fault) {
        tell(reason, fault.what());
    } catch (...) {
        tell(reason, "unknown exception");
    }
    return nullptr;
}

void reel_spm_close(reel_spm *spm)
{
    delete spm;
}

int32_t reel_spm_id(const reel_spm *spm, const char *piece)
{
    try {
        const int id = spm->processor.PieceToId(piece);
        return id >= 0 && id < spm->processor.GetPieceSize() && spm->processor.IdToPiece(id) == piece ? id : -1;
    } catch (...) {
        return -1;
    }
}

int reel_spm_encode(const reel_spm *spm, const char *text, size_t n, reel_spm_id_fn *each, void *user, char reason[REEL_SPM_REASON_MAX])
{
    std::vector<int> ids;
    try {
        const auto status = spm->processor.Encode(absl::string_view(text, n), &ids);
        if (!status.ok()) {
            tell(reason, status.ToString());
            return -1;
        }
    } catch (const std::exception &fault) {
        tell(reason, fault.what());
        return -1;
    } catch (...) {
        tell(reason, "unknown exception");
        return -1;
    }
    for (const int id : ids) {
        const int result = each(user, id);
        if (result != 0) return result;
    }
    return 0;
}
