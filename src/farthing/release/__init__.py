"""From statistics to measurements and back to answers: what is asked, what is measured, what may be said."""
