//! Sign-in to servers at an address, with OAuth 2.1. The protocol is spoken here because rmcp's sign-in has no device
//! flow, no pasted address and no fixed port, and would save a quarter of these lines for one more dependency. What is
//! stored has the shape that pi gives it.

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
