//! What people bring along: instructions, skills, prompt templates, and whether a project may be trusted.
