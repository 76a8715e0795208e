import opcode,sys
v=sys.version_info[:2]
om=dict(opcode.opmap)
caches=getattr(opcode,'_inline_cache_entries',None)
if isinstance(caches,list):
    cc={n:caches[c] for n,c in om.items() if c<len(caches) and caches[c]}
elif caches: cc={n:c for n,c in caches.items() if c}
else: cc={}
spec=getattr(opcode,'_specializations',{})
som=getattr(opcode,'_specialized_opmap',None)
if som is None and v==(3,11) or v==(3,12):
    # numbering as in opcode tables: fill gaps
    pass
print(v, 'caches', cc)
import json
print('specmap', som)
print('specs', spec)
