import sys,time,faulthandler
sys.path.insert(0,'/tmp/held/main')
faulthandler.dump_traceback_later(25,exit=True)
from adhere.verdict import parse
n=int(sys.argv[2]); k=sys.argv[1]
t={'json esc':lambda:'{"answer": "'+'\\"'*(n//2)+'"}','digits':lambda:'1'*n,'jnum':lambda:'{"answer": '+'1'*(n-12)+'}','num list':lambda:''.join(f'{i}. YES\n' for i in range(n//8))}[k]()
for cut in (False,True):
    a=time.process_time(); r=parse(t,cut=cut); print(k,n,cut,r,round(time.process_time()-a,2),flush=True)
