//! Ciphers with authentication.

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// The input of an encryption or decryption. For decryption, the tag follows the data.
pub struct AeadInput {
    pub key: Vec<u8>,
    pub nonce: Vec<u8>,
    pub extra: Vec<u8>,
    pub data: Vec<u8>,
}

impl AeadInput {
    /// Encrypts, and appends the tag.
    pub fn seal(mut self, name: &str) -> Result<Vec<u8>, &'static str> {
        let (key, nonce) = self.prepare(name)?;
        let sealed = key.seal_in_place_append_tag(nonce, Aad::from(&self.extra), &mut self.data);
        sealed.map_err(|_| "the data is too long")?;
        Ok(self.data)
    }

    /// Decrypts, if the tag is right.
    pub fn open(mut self, name: &str) -> Result<Vec<u8>, &'static str> {
        let (key, nonce) = self.prepare(name)?;
        let opened = key.open_in_place(nonce, Aad::from(&self.extra), &mut self.data);
        let length = opened.map_err(|_| "Unsupported state or unable to authenticate data")?.len();
        self.data.truncate(length);
        Ok(self.data)
    }

    fn prepare(&self, name: &str) -> Result<(LessSafeKey, Nonce), &'static str> {
        let algorithm: &'static Algorithm = match name {
            "aes-128-gcm" => &AES_128_GCM,
            "aes-256-gcm" => &AES_256_GCM,
            "chacha20-poly1305" => &CHACHA20_POLY1305,
            _ => return Err("unknown cipher"),
        };
        let key = UnboundKey::new(algorithm, &self.key).map_err(|_| "Invalid key length")?;
        let nonce = Nonce::try_assume_unique_for_key(&self.nonce);
        let nonce = nonce.map_err(|_| "Invalid initialization vector: 12 bytes are expected")?;
        Ok((LessSafeKey::new(key), nonce))
    }
}
