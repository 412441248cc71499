// An OpenAI-compatible endpoint that is never the bottleneck: one thread, epoll, HTTP/1.1 keep-alive.
//
//   mock LATENCY_MS REPLY_BYTES TRANSIENT REFUSED NULL TORN
//
// Binds a free port of the loopback interface, prints it, and serves until its parent dies:
//
//   POST …/chat/completions  an answer, LATENCY_MS after the request is complete; a path that
//                      contains "/judge/" answers YES or NO, any other a text of REPLY_BYTES
//   GET  /stats        counts as JSON
//   GET  /v1/models    one model
//
// The last four are shares of bodies, drawn by a hash of the body, so that the same bodies are met
// every time. TRANSIENT: the first attempt is refused with 429, 500, 503 or 529, or reset.
// REFUSED: 400, always. NULL: an answer whose content is null, always. TORN: the first attempt is
// cut short (well framed but no JSON, or a connection that ends early) or trickles in.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 1 << 16, TABLE = 1 << 20, EVENTS = 512, TRICKLE_BYTES = 64 };
static const double TRICKLE_S = 0.02;
static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\"}]}";

typedef enum { FINE, TRANSIENT, REFUSED, EMPTY, TORN, FAULTS } Fault;

typedef struct {
  char *in, *out;                      // what was received and is not used up; what is to be sent
  size_t in_size, in_room, out_size, out_sent;
  uint64_t key;                        // of the request in flight
  unsigned serial;                     // tells a connection from an earlier one of the same number
  int open, busy, judge, attempt, trickles, ends;
  Fault fault;
} Connection;

typedef struct {
  double at;
  int fd;
  unsigned serial;
} Timer;

typedef struct {
  uint64_t key;
  uint32_t attempts, answered, refused;
} Body;

static struct {
  unsigned long long requests, judge, answered, distinct, distinct_answered, resent_after_answer,
      resent_after_refusal, faults[FAULTS], connections, bytes_in, escapes;
  int in_flight, most_in_flight;
  double first, last;
} counts;

static double latency_s, shares[FAULTS];
static char *text;  // of one reply
static Connection connections[MAX_FD];
static Body *bodies;
static Timer *timers;
static size_t timer_count, timer_room;
static int poller, timer_fd;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

static uint64_t hash_of(const char *data, size_t size) {
  uint64_t h = mixed(size + 1);
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  uint64_t rest = 0;
  memcpy(&rest, data, size);
  h = mixed(h ^ rest);
  return h ? h : 1;
}

static double share_of(uint64_t key) { return (double)(mixed(key ^ 0x5bd1e995) >> 11) / 9007199254740992.0; }

static Body *body_of(uint64_t key) {
  size_t i = key % TABLE;
  while (bodies[i].key && bodies[i].key != key) i = (i + 1) % TABLE;
  if (!bodies[i].key) {
    if (++counts.distinct > TABLE / 2) exit(3);
    bodies[i].key = key;
  }
  return &bodies[i];
}

// Timers: a binary heap by time.

static void set_timer(double at, int fd) {
  if (timer_count == timer_room) {
    timer_room = timer_room ? 2 * timer_room : 1024;
    timers = realloc(timers, timer_room * sizeof *timers);
  }
  size_t i = timer_count++;
  for (; i && timers[(i - 1) / 2].at > at; i = (i - 1) / 2) timers[i] = timers[(i - 1) / 2];
  timers[i] = (Timer){at, fd, connections[fd].serial};
}

static Timer next_timer(void) {
  Timer first = timers[0], last = timers[--timer_count];
  size_t i = 0, child;
  while ((child = 2 * i + 1) < timer_count) {
    if (child + 1 < timer_count && timers[child + 1].at < timers[child].at) child++;
    if (timers[child].at >= last.at) break;
    timers[i] = timers[child];
    i = child;
  }
  if (timer_count) timers[i] = last;
  return first;
}

static void end(int fd, int reset) {
  Connection *c = &connections[fd];
  if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
  if (c->busy) counts.in_flight--;
  close(fd);
  free(c->in);
  free(c->out);
  unsigned serial = c->serial;
  memset(c, 0, sizeof *c);
  c->serial = serial + 1;
}

// Replies.

static void put(Connection *c, int status, const char *header, const char *body, size_t size, size_t claimed) {
  c->out = realloc(c->out, size + 512);
  int head = sprintf(c->out,
                     "HTTP/1.1 %d Status\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
                     status, header, claimed);
  memcpy(c->out + head, body, size);
  c->out_size = (size_t)head + size;
  c->out_sent = 0;
}

static void put_error(Connection *c, int status, const char *header, const char *message, const char *type) {
  char body[512];
  int size = sprintf(body, "{\"error\":{\"message\":\"%s\",\"type\":\"%s\",\"param\":null,\"code\":null}}", message, type);
  put(c, status, header, body, (size_t)size, (size_t)size);
}

static void put_answer(Connection *c, int null) {
  static char *body;
  if (!body) body = malloc(strlen(text) + 1024);
  char verdict[64];
  sprintf(verdict, "%s. Checked against the question.", c->key & 1 ? "YES" : "NO");
  const char *content = c->judge ? verdict : text, *quote = null ? "" : "\"";
  int size = sprintf(body,
                     "{\"id\":\"chatcmpl-%016llx\",\"object\":\"chat.completion\",\"created\":1700000000,"
                     "\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                     "\"content\":%s%s%s,\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],"
                     "\"usage\":{\"prompt_tokens\":2500,\"completion_tokens\":75,\"total_tokens\":2575}}",
                     (unsigned long long)c->key, quote, null ? "null" : content, quote);
  size_t sent = (size_t)size, claimed = sent;
  Body *known = body_of(c->key);
  if (c->fault == TORN && c->attempt == 0) {
    int kind = (int)(mixed(c->key) % 3);
    c->trickles = kind == 0;
    c->ends = kind == 1;
    if (kind) sent /= 2;
    if (kind == 2) claimed = sent;
  }
  if (sent == (size_t)size) {
    counts.answered++;
    if (!known->answered++) counts.distinct_answered++;
  }
  put(c, 200, "", body, sent, claimed);
}

// Answer the request in flight; returns 0 where the connection was reset instead.
static int answer(int fd) {
  Connection *c = &connections[fd];
  counts.last = now();
  if (c->fault == TRANSIENT && c->attempt == 0) {
    static const int statuses[] = {429, 500, 503, 529};
    unsigned kind = (unsigned)(mixed(c->key) % 5);
    if (kind == 4) {
      end(fd, 1);
      return 0;
    }
    put_error(c, statuses[kind], kind ? "" : "Retry-After: 0\r\n", "try again", "server_error");
  } else if (c->fault == REFUSED) {
    body_of(c->key)->refused++;
    put_error(c, 400, "", "Invalid prompt: flagged by our content policy", "invalid_request_error");
  } else {
    put_answer(c, c->fault == EMPTY);
  }
  c->busy = 0;
  counts.in_flight--;
  return 1;
}

static void put_stats(Connection *c) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  char body[1024];
  int size = sprintf(body,
                     "{\"requests\":%llu,\"judge\":%llu,\"answered\":%llu,\"distinct\":%llu,"
                     "\"distinct_answered\":%llu,\"resent_after_answer\":%llu,\"resent_after_refusal\":%llu,"
                     "\"transient\":%llu,\"refused\":%llu,\"null\":%llu,\"torn\":%llu,\"connections\":%llu,"
                     "\"bytes_in\":%llu,\"escapes\":%llu,\"in_flight\":%d,\"most_in_flight\":%d,"
                     "\"span_s\":%.4f,\"cpu_s\":%.3f}",
                     counts.requests, counts.judge, counts.answered, counts.distinct,
                     counts.distinct_answered, counts.resent_after_answer, counts.resent_after_refusal,
                     counts.faults[TRANSIENT], counts.faults[REFUSED], counts.faults[EMPTY],
                     counts.faults[TORN], counts.connections, counts.bytes_in, counts.escapes,
                     counts.in_flight, counts.most_in_flight, counts.last - counts.first,
                     (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6);
  put(c, 200, "", body, (size_t)size, (size_t)size);
}

// Requests.

static void take(int fd, const char *path, const char *body, size_t size) {
  Connection *c = &connections[fd];
  double at = now();
  if (!counts.requests++) counts.first = at;
  counts.bytes_in += size;
  counts.escapes += memmem(body, size, "\\u", 2) != NULL;
  c->judge = strstr(path, "/judge/") != NULL;
  counts.judge += (unsigned)c->judge;
  c->key = hash_of(body, size);
  Body *known = body_of(c->key);
  c->attempt = (int)known->attempts++;
  counts.resent_after_answer += known->answered > 0;
  counts.resent_after_refusal += known->refused > 0;
  double drawn = share_of(c->key);
  for (c->fault = TRANSIENT; c->fault < FAULTS && drawn >= shares[c->fault]; c->fault++)
    drawn -= shares[c->fault];
  if (c->fault == FAULTS) c->fault = FINE;
  if (c->attempt == 0) counts.faults[c->fault]++;
  c->busy = 1;
  if (++counts.in_flight > counts.most_in_flight) counts.most_in_flight = counts.in_flight;
  set_timer(at + latency_s, fd);
}

// Send what is to be sent; returns 0 where the connection ended.
static int send_out(int fd) {
  Connection *c = &connections[fd];
  while (c->out_sent < c->out_size) {
    size_t left = c->out_size - c->out_sent;
    if (c->trickles && left > TRICKLE_BYTES) left = TRICKLE_BYTES;
    ssize_t sent = send(fd, c->out + c->out_sent, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) sent = 0;
    if (sent < 0) {
      end(fd, 0);
      return 0;
    }
    c->out_sent += (size_t)sent;
    if (c->out_sent < c->out_size && (c->trickles || !sent)) {
      set_timer(now() + (c->trickles ? TRICKLE_S : 0.001), fd);
      return 1;
    }
  }
  c->out_size = c->out_sent = 0;
  c->trickles = 0;
  if (c->ends) {
    end(fd, 0);
    return 0;
  }
  return 1;
}

// Take the next request where one is complete; requests come one after another on a connection.
static void read_request(int fd) {
  Connection *c = &connections[fd];
  while (!c->busy && !c->out_size && c->in_size) {
    c->in[c->in_size] = 0;
    char *blank = memmem(c->in, c->in_size, "\r\n\r\n", 4);
    if (!blank) return;
    *blank = 0;
    size_t head = (size_t)(blank - c->in) + 4, size = 0;
    char *length = strcasestr(c->in, "\r\nContent-Length:"), *chunked = strcasestr(c->in, "\r\nTransfer-Encoding:");
    if (length) size = strtoul(length + 17, NULL, 10);
    if (chunked) {
      fprintf(stderr, "mock: a chunked request is not understood\n");
      exit(2);
    }
    if (c->in_size < head + size) {
      *blank = '\r';
      return;
    }
    if (c->in[0] == 'P' && strstr(c->in, "/chat/completions "))
      take(fd, c->in, c->in + head, size);
    else if (c->in[0] == 'P')
      put_error(c, 404, "", "not found", "invalid_request_error");
    else if (strstr(c->in, "/stats"))
      put_stats(c);
    else
      put(c, 200, "", MODELS, sizeof MODELS - 1, sizeof MODELS - 1);
    c->in_size -= head + size;
    memmove(c->in, c->in + head + size, c->in_size);
    if (c->out_size && !send_out(fd)) return;
  }
}

static void receive(int fd) {
  Connection *c = &connections[fd];
  for (;;) {
    if (c->in_room - c->in_size < 1 << 16) {
      c->in_room = 2 * c->in_room + (1 << 17);
      c->in = realloc(c->in, c->in_room + 1);
    }
    size_t room = c->in_room - c->in_size;
    ssize_t got = recv(fd, c->in + c->in_size, room, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      end(fd, 0);
      return;
    }
    if (got > 0) c->in_size += (size_t)got;
    if (got < (ssize_t)room) break;
  }
  read_request(fd);
}

static void accept_all(int listener) {
  int fd;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    if (fd >= MAX_FD) exit(3);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    connections[fd].open = 1;
    counts.connections++;
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.fd = fd}});
  }
}

// Wake up for the next timer; epoll's own timeout counts whole milliseconds.
static void set_alarm(void) {
  struct itimerspec at = {0};
  if (timer_count) {
    at.it_value.tv_sec = (time_t)timers[0].at;
    at.it_value.tv_nsec = (long)((timers[0].at - (double)at.it_value.tv_sec) * 1e9);
  }
  timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void expire(void) {
  double t = now();
  while (timer_count && timers[0].at <= t) {
    Timer timer = next_timer();
    Connection *c = &connections[timer.fd];
    if (!c->open || c->serial != timer.serial) continue;
    if (c->busy && !answer(timer.fd)) continue;
    if (send_out(timer.fd)) read_request(timer.fd);
  }
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "mock LATENCY_MS REPLY_BYTES TRANSIENT REFUSED NULL TORN\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  latency_s = atof(argv[1]) / 1000;
  size_t reply = strtoul(argv[2], NULL, 10);
  text = malloc(reply + 1);
  for (size_t i = 0; i < reply; i++) text[i] = "The plan has three short parts and each is checked. "[i % 52];
  text[reply] = 0;
  for (int i = TRANSIENT; i < FAULTS; i++) shares[i] = atof(argv[2 + i]);
  bodies = calloc(TABLE, sizeof *bodies);
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){MAX_FD, MAX_FD});
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(listener, (void *)&address, length) || listen(listener, 4096) ||
      getsockname(listener, (void *)&address, &length)) {
    perror("mock");
    return 1;
  }
  poller = epoll_create1(EPOLL_CLOEXEC);
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &(struct epoll_event){EPOLLIN, {.fd = listener}});
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  epoll_ctl(poller, EPOLL_CTL_ADD, timer_fd, &(struct epoll_event){EPOLLIN, {.fd = timer_fd}});
  struct epoll_event events[EVENTS];
  for (;;) {
    set_alarm();
    int ready = epoll_wait(poller, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == listener)
        accept_all(listener);
      else if (connections[fd].open)
        receive(fd);
    }
    expire();
  }
}
