// TLS of the server's side: a certificate that may be replaced while it is in use, and the
// encryption of one connection, which touches no socket.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ashlar {

// One connection. Used by one thread.
class TlsSession {
 public:
  explicit TlsSession(SSL_CTX* context);

  // kMore: the peer has to send first.
  enum class State { kOk, kMore, kFailed };
  State Handshake();
  // Appends what there is, 16 KiB at most.
  State Read(std::string& plain);
  State Write(std::string_view plain);
  // Tells the peer that no more will come.
  void Close();

  // What came from the peer.
  void Feed(std::string_view bytes);
  // What is to be sent to it; after each of the calls above.
  std::string Take();

 private:
  State StateOf(int result) const;

  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

// A certificate with its chain, and its key, in PEM files. For any thread.
class TlsCertificate {
 public:
  static Result<std::unique_ptr<TlsCertificate>> Load(const std::string& certificate_file,
                                                      const std::string& key_file);

  // With the files as they are now; when they cannot be used, as they were before.
  std::unique_ptr<TlsSession> NewSession();

 private:
  using Context = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;
  TlsCertificate(std::string certificate_file, std::string key_file);
  Result<Context> Read() const;
  // Other for other files under the same names.
  std::string Version() const;

  const std::string certificate_file_, key_file_;
  std::mutex mutex_;
  std::string version_;  // of the files that were last tried; guarded by mutex_
  Context context_;      // guarded by mutex_
};

}  // namespace ashlar
