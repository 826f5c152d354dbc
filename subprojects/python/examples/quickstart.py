import runnel

session = runnel.Session()
for piece in session.generate("Name three rivers of France."):
    print(piece, end="", flush=True)
