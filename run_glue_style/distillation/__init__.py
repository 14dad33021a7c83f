"""A student learns the sentence vectors of a teacher: texts, the teacher's vectors, and what is minimised."""
