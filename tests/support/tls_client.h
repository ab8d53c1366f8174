// Certificates made on the spot, and a client that trusts one of them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ashlar::test {

// A folder with tls.crt, for the name "hooks.test" and signed by itself, and its tls.key.
class TlsFiles {
 public:
  explicit TlsFiles(int serial = 1) {
    std::string folder = testing::TempDir() + "ashlar-tls-XXXXXX";
    folder_ = mkdtemp(folder.data());
    Make(serial);
  }
  ~TlsFiles() { std::filesystem::remove_all(folder_); }

  std::string certificate() const { return folder_ + "/tls.crt"; }
  std::string key() const { return folder_ + "/tls.key"; }

  // Another pair in place of the one before.
  void Make(int serial) {
    std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    std::unique_ptr<X509, void (*)(X509*)> x509(X509_new(), X509_free);
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* name = X509_get_subject_name(x509.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("hooks.test"), -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:hooks.test");
    X509_add_ext(x509.get(), names, -1);
    X509_EXTENSION_free(names);
    X509_sign(x509.get(), key.get(), EVP_sha256());
    // As Kubernetes does: a new file in place of the old one, never a written-over one.
    WriteAnew(certificate(), [&](FILE* file) { PEM_write_X509(file, x509.get()); });
    WriteAnew(this->key(), [&](FILE* file) {
      PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

 private:
  template <class Write>
  static void WriteAnew(const std::string& path, Write&& write) {
    FILE* file = fopen((path + ".new").c_str(), "w");
    write(file);
    fclose(file);
    std::filesystem::rename(path + ".new", path);
  }

  std::string folder_;
};

class TlsClient {
 public:
  TlsClient(int port, const std::string& trusted)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(nullptr, SSL_free),
        fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    SSL_CTX_load_verify_locations(context_.get(), trusted.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set1_host(ssl_.get(), "hooks.test");
    SSL_set_fd(ssl_.get(), fd_);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                 SSL_connect(ssl_.get()) == 1;
  }
  TlsClient(const TlsClient&) = delete;
  ~TlsClient() { close(fd_); }

  bool connected() const { return connected_; }
  int64_t serial() const {
    std::unique_ptr<X509, void (*)(X509*)> peer(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    return peer ? ASN1_INTEGER_get(X509_get0_serialNumber(peer.get())) : 0;
  }

  // The body of the answer, which must have a Content-Length.
  std::string Post(const std::string& path, std::string_view body) {
    std::string request = "POST " + path + " HTTP/1.1\r\nHost: hooks.test\r\nContent-Length: " +
                          std::to_string(body.size()) + "\r\n\r\n";
    request += body;
    SSL_write(ssl_.get(), request.data(), static_cast<int>(request.size()));
    std::string answer;
    while (true) {
      size_t head = answer.find("\r\n\r\n");
      size_t length = answer.find("Content-Length: ");
      if (head != answer.npos && length < head) {
        size_t size = std::stoul(answer.substr(length + 16));
        if (answer.size() >= head + 4 + size) return answer.substr(head + 4, size);
      }
      char bytes[16384];
      int got = SSL_read(ssl_.get(), bytes, sizeof bytes);
      if (got <= 0) return "";
      answer.append(bytes, static_cast<size_t>(got));
    }
  }

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  int fd_;
  bool connected_ = false;
};

}  // namespace ashlar::test
