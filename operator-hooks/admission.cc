#include "operator-hooks/admission.h"

#include <fmt/format.h>

#include <optional>

#include "operator-hooks/inference_model.h"
#include "operator-hooks/json_writer.h"
#include "operator-hooks/verdict.h"

namespace ashlar::hooks {
namespace {

constexpr std::string_view kVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";

struct Refusal {
  std::string reason, message;
};

// An object of the request; empty when there is none.
std::optional<JsonElement> ObjectOf(JsonElement review, std::string_view key) {
  JsonElement object;
  if (review["request"][key].get(object) != simdjson::SUCCESS || object.is_null())
    return std::nullopt;
  return object;
}

// Whether what is judged here was stored before.
bool Unchanged(JsonElement review, const InferenceModel& model) {
  std::optional<JsonElement> old = ObjectOf(review, "oldObject");
  if (!old) return false;
  Problems problems;  // of an object that is stored: nobody's mistake now
  InferenceModel before = ReadInferenceModel(*old, "", problems);
  return before.model == model.model && before.wishes_text == model.wishes_text;
}

std::optional<Refusal> Judged(JsonElement review, const Settings& settings) {
  std::optional<JsonElement> object = ObjectOf(review, "object");
  if (!object) return std::nullopt;  // a deletion
  Problems problems;
  InferenceModel model = ReadInferenceModel(*object, "", problems);
  if (Unchanged(review, model)) return std::nullopt;
  if (!problems.empty()) return Refusal{"SpecInvalid", Text(problems)};
  Verdict verdict = JudgeAnywhere(model, settings);
  if (verdict.accepted) return std::nullopt;
  return Refusal{verdict.reason, verdict.message};
}

}  // namespace

std::string ReviewAdmission(JsonElement review, const Settings& settings, Problems& problems) {
  constexpr int kUnprocessable = 422;
  ObjectReader reader(review, "", problems);
  std::string version = reader.Text("apiVersion"), kind = reader.Text("kind");
  if (version != kVersion || kind != kKind) {
    reader.Refuse("kind", fmt::format("{} of {}", kind, version),
                  fmt::format("{} of {}", kKind, kVersion),
                  "name v1 in the webhook's admissionReviewVersions");
  }
  std::string uid = reader.Object("request").Text("uid");
  if (uid.empty()) reader.Refuse("request.uid", "nothing", "the request's uid", "send it");
  if (!problems.empty()) return "";
  std::optional<Refusal> refusal = Judged(review, settings);
  JsonWriter out;
  out.Object([&] {
    out.Add("apiVersion", kVersion);
    out.Add("kind", kKind);
    out.Object("response", [&] {
      out.Add("uid", uid);
      out.Add("allowed", !refusal);
      if (!refusal) return;
      out.Object("status", [&] {
        out.Add("code", kUnprocessable);
        out.Add("reason", refusal->reason);
        out.Add("message", refusal->message);
      });
    });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
