//! TLS of both ends: the server has a fixed raw public key (RFC 7250), which the client expects.
//!
//! The key is published, so it protects nothing. It makes the handshake the same in every run: no certificate has
//! a date that could pass.

use std::sync::Arc;

use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, version};

/// The name that the client asks for; nobody checks it.
pub const NAME: &str = "plait.invalid";
const PROTOCOL: &[u8] = b"plait-quic";
const SEED: [u8; 32] = *b"a test key, known to everybody..";
/// An Ed25519 private key in PKCS #8 (RFC 8410, section 7), before its 32 bytes.
const PRIVATE: [u8; 16] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
/// An Ed25519 `SubjectPublicKeyInfo` (RFC 8410, section 4), before its 32 bytes.
const PUBLIC: [u8; 12] = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0];

/// Return the configuration of a server.
pub fn server() -> Result<ServerConfig, Error> {
    let private = PrivatePkcs8KeyDer::from([&PRIVATE[..], &SEED].concat());
    let key = provider::sign::any_eddsa_type(&private)?;
    let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public())], key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Return the configuration of a client.
pub fn client() -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(KnownKey(public())))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn public() -> Vec<u8> {
    let pair = Ed25519KeyPair::from_seed_unchecked(&SEED).expect("the seed has 32 bytes");
    [&PUBLIC[..], pair.public_key().as_ref()].concat()
}

/// Accepts one public key.
#[derive(Debug)]
struct KnownKey(Vec<u8>);

impl ServerCertVerifier for KnownKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if key.as_ref() == self.0 {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General("the server has another key; start it with the same plait-quic".into()))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is used".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider::default_provider().signature_verification_algorithms;
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
