//! `node:crypto`, on top of ring.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, TypedArray};

use super::{aead, md5};
use crate::engine::throw;

type Bytes<'js> = rquickjs::Result<TypedArray<'js, u8>>;

pub(super) fn install<'js>(group: &Object<'js>) -> rquickjs::Result<()> {
    group.set("hash", Func::from(|ctx: Ctx<'js>, name: String, data: String| hash(&ctx, &name, &unpack(&data))))?;
    group.set(
        "hmac",
        Func::from(|ctx: Ctx<'js>, name: String, key: String, data: String| {
            keyed(&ctx, &name, &unpack(&key), &unpack(&data))
        }),
    )?;
    group.set("random", Func::from(|ctx: Ctx<'js>, size: f64| random(&ctx, size)))?;
    group.set(
        "pbkdf2",
        Func::from(|ctx: Ctx<'js>, name: String, password: String, salt: String, rounds: f64, length: f64| {
            derive(&ctx, &name, &unpack(&password), &unpack(&salt), rounds, length)
        }),
    )?;
    group.set(
        "aead",
        Func::from(|ctx: Ctx<'js>, name: String, key: String, iv: String, aad: String, data: String, opens: bool| {
            let work =
                aead::AeadInput { key: unpack(&key), nonce: unpack(&iv), extra: unpack(&aad), data: unpack(&data) };
            let result = if opens { work.open(&name) } else { work.seal(&name) };
            let bytes = result.map_err(|why| throw(&ctx, "ERR_CRYPTO_INVALID_STATE", why))?;
            TypedArray::<u8>::new(ctx, bytes)
        }),
    )
}

fn unpack(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("base64 made by the engine is valid")
}

fn unsupported(ctx: &Ctx<'_>, name: &str) -> rquickjs::Error {
    throw(ctx, "ERR_CRYPTO_INVALID_DIGEST", &format!("{name} is not available for this"))
}

fn hash<'js>(ctx: &Ctx<'js>, name: &str, data: &[u8]) -> Bytes<'js> {
    let algorithm = match name {
        "md5" => return TypedArray::new(ctx.clone(), md5::digest(data).to_vec()),
        "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => &digest::SHA256,
        "sha384" => &digest::SHA384,
        "sha512" => &digest::SHA512,
        _ => return Err(unsupported(ctx, name)),
    };
    TypedArray::new(ctx.clone(), digest::digest(algorithm, data).as_ref().to_vec())
}

fn keyed<'js>(ctx: &Ctx<'js>, name: &str, key: &[u8], data: &[u8]) -> Bytes<'js> {
    let algorithm = match name {
        "md5" => return TypedArray::new(ctx.clone(), md5::keyed(key, data).to_vec()),
        "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => hmac::HMAC_SHA256,
        "sha384" => hmac::HMAC_SHA384,
        "sha512" => hmac::HMAC_SHA512,
        _ => return Err(unsupported(ctx, name)),
    };
    let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
    TypedArray::new(ctx.clone(), tag.as_ref().to_vec())
}

fn random<'js>(ctx: &Ctx<'js>, size: f64) -> Bytes<'js> {
    if !(0.0..=(1u32 << 31) as f64).contains(&size) {
        return Err(throw(ctx, "ERR_OUT_OF_RANGE", "The value of \"size\" is out of range"));
    }
    let mut bytes = vec![0; size as usize];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| throw(ctx, "ERR_OSSL", "the system has no randomness to give"))?;
    TypedArray::new(ctx.clone(), bytes)
}

fn derive<'js>(ctx: &Ctx<'js>, name: &str, password: &[u8], salt: &[u8], rounds: f64, length: f64) -> Bytes<'js> {
    let algorithm = match name {
        "sha1" => pbkdf2::PBKDF2_HMAC_SHA1,
        "sha256" => pbkdf2::PBKDF2_HMAC_SHA256,
        "sha384" => pbkdf2::PBKDF2_HMAC_SHA384,
        "sha512" => pbkdf2::PBKDF2_HMAC_SHA512,
        _ => return Err(unsupported(ctx, name)),
    };
    let rounds = NonZeroU32::new(rounds as u32);
    let rounds = rounds.ok_or_else(|| throw(ctx, "ERR_OUT_OF_RANGE", "The value of \"iterations\" is out of range"))?;
    let mut key = vec![0; length.clamp(0.0, 1e6) as usize];
    pbkdf2::derive(algorithm, rounds, salt, password, &mut key);
    TypedArray::new(ctx.clone(), key)
}
