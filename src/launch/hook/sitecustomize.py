# Put here by `pipetop run`, for the command that it launched alone; gone when it ends.
#
# Every Python below that command runs this at its start, so it does next to nothing: it sees to it that
# pipetop_hook is loaded once torch's DataLoader is, and makes way for the sitecustomize that would have run.
import sys

_HERE = __file__.rpartition("/")[0]
_asking = False


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch.utils.data.dataloader":
            return _dataloader(name, path, target)
        if name in ("pipetop_hook", "pipetop_hook_device", "pipetop_hook_trial"):
            from importlib.machinery import PathFinder

            return PathFinder.find_spec(name, [_HERE])
        return None


def _dataloader(name, path, target):
    # What the others find, told to call us once it has run. It keeps its own loader, and we stay in the list:
    # another thread may be walking through it. One of the others may ask us in turn.
    global _asking
    if _asking:
        return None
    _asking = True
    try:
        for finder in sys.meta_path:
            find_spec = None if finder is _Finder else getattr(finder, "find_spec", None)
            spec = find_spec and find_spec(name, path, target)
            if spec is not None:
                _call_us(spec.loader)
                return spec
    finally:
        _asking = False
    return None


def _call_us(loader):
    try:
        execute = loader.exec_module

        def exec_module(module):
            vars(loader).pop("exec_module", None)
            execute(module)
            try:
                import pipetop_hook

                pipetop_hook.install(module)
            except Exception:
                # pipetop has ended and taken its files along: nobody wants to know.
                pass

        loader.exec_module = exec_module
    except Exception:
        # A loader that cannot be told: the script does without us.
        pass


try:
    # As if we were not there: this folder is found through _Finder alone.
    sys.path[:] = [path for path in sys.path if path != _HERE]
    sys.meta_path.insert(0, _Finder)
except Exception:
    pass
# The next one takes our name and our place. What it raises, and that there is none, is for Python's site.py
# to hear, as ever.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
