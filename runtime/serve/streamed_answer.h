// The answer of a request with `stream`: server-sent events, each sent as soon as it is known.
// Belongs to one HTTP thread.
#pragma once

#include <vector>

#include "http/server.h"
#include "serve/choice.h"
#include "serve/errors.h"

namespace ashlar {

class StreamedAnswer {
 public:
  // All outlive the answer. `headers` are sent with it.
  StreamedAnswer(const Serving& serving, const ApiRequest& request, const ResponseHead& head,
                 const HttpHeaders& headers, HttpResponder& responder)
      : serving_(serving),
        request_(request),
        head_(head),
        headers_(headers),
        responder_(responder) {}

  // What the choice's assembler has just made. False once the client has gone.
  bool Add(Choice& choice, AnswerPiece piece);
  // Something has gone out: an error can only be one more event.
  bool begun() const { return begun_; }
  // The last events.
  void Finish(const Usage& usage);
  void Fail(const ApiError& error);
  // No further event.
  void End();

 private:
  std::string Opening(Choice& choice);

  const Serving& serving_;
  const ApiRequest& request_;
  const ResponseHead& head_;
  const HttpHeaders& headers_;
  HttpResponder& responder_;
  bool begun_ = false;
  std::vector<bool> opened_;  // by choice: its first event has gone out
};

}  // namespace ashlar
