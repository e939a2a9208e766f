from .built import Built
def minilm() -> Built: raise NotImplementedError
