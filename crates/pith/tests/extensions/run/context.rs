//! What the model gets to read and how it is asked, changed by extensions.
