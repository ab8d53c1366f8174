#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <array>

#include "base/check.h"
#include "base/log.h"

namespace ashlar {
namespace {

std::string LastError() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

Problem Unusable(const std::string& file, std::string_view allowed) {
  return {file, LastError(), std::string(allowed), "name a certificate and its own key"};
}

}  // namespace

TlsSession::TlsSession(SSL_CTX* context) : ssl_(SSL_new(context), SSL_free) {
  Check(ssl_ != nullptr, "a session is made of a context");
  SSL_set_accept_state(ssl_.get());
  SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
}

TlsSession::State TlsSession::StateOf(int result) const {
  if (result > 0) return State::kOk;
  return SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ ? State::kMore : State::kFailed;
}

TlsSession::State TlsSession::Handshake() {
  ERR_clear_error();
  return StateOf(SSL_do_handshake(ssl_.get()));
}

TlsSession::State TlsSession::Read(std::string& plain) {
  std::array<char, 16384> bytes;
  ERR_clear_error();
  int got = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (got > 0) plain.append(bytes.data(), static_cast<size_t>(got));
  return StateOf(got);
}

TlsSession::State TlsSession::Write(std::string_view plain) {
  ERR_clear_error();
  size_t put = 0;
  return StateOf(SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &put));
}

void TlsSession::Close() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
}

void TlsSession::Feed(std::string_view bytes) {
  BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
}

std::string TlsSession::Take() {
  BIO* out = SSL_get_wbio(ssl_.get());
  std::string bytes(BIO_ctrl_pending(out), '\0');
  if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

TlsCertificate::TlsCertificate(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      context_(nullptr, SSL_CTX_free) {}

Result<std::unique_ptr<TlsCertificate>> TlsCertificate::Load(const std::string& certificate_file,
                                                             const std::string& key_file) {
  std::unique_ptr<TlsCertificate> certificate(new TlsCertificate(certificate_file, key_file));
  certificate->version_ = certificate->Version();
  Result<Context> context = certificate->Read();
  if (!context) return context.problems();
  certificate->context_ = *std::move(context);
  return certificate;
}

Result<TlsCertificate::Context> TlsCertificate::Read() const {
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  Check(context != nullptr, "TLS has a server's side");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file_.c_str()) != 1)
    return Unusable(certificate_file_, "a certificate and its chain in PEM");
  // Checks that the key is the certificate's.
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file_.c_str(), SSL_FILETYPE_PEM) != 1)
    return Unusable(key_file_, "the certificate's private key in PEM");
  return context;
}

std::string TlsCertificate::Version() const {
  std::string version;
  for (const std::string& file : {certificate_file_, key_file_}) {
    struct stat facts {};
    if (stat(file.c_str(), &facts) != 0) return "";
    version += fmt::format("{} {} {}.{};", facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                           facts.st_mtim.tv_nsec);
  }
  return version;
}

std::unique_ptr<TlsSession> TlsCertificate::NewSession() {
  std::lock_guard lock(mutex_);
  std::string version = Version();
  if (version != version_) {
    version_ = std::move(version);
    Result<Context> context = Read();
    if (context) {
      context_ = *std::move(context);
    } else {
      LogWarning("http", "the certificate before is used on: {}", Text(context.problems()));
    }
  }
  return std::make_unique<TlsSession>(context_.get());
}

}  // namespace ashlar
