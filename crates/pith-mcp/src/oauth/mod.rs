//! Sign-in to servers at an address, with OAuth 2.1. The protocol is spoken here because rmcp's needs a second HTTP
//! client; what is stored has the shape that pi gives it.

mod callback;
mod device;
mod discovery;
mod exchange;
mod login;
mod sign_in;
mod store;

pub use device::DeviceCode;
pub use discovery::Challenge;
pub use exchange::is_loopback;
pub use login::Means;
pub use sign_in::SignIn;
pub use store::Store;
