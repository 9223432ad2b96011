import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.logging.Logger;

/**
 * A service that knows nothing of OpenTelemetry: for each request it writes a line to its log, and asks the next
 * service, if there is one.
 */
public final class Service {
    private static final Logger LOG = Logger.getLogger("service");

    public static void main(String[] args) throws IOException {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress(loopback, port), 0);
        server.createContext("/", exchange -> {
            LOG.info("java was asked for " + exchange.getRequestURI().getPath());
            byte[] answer = (greeting() + ask(System.getenv("NEXT"))).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }

    /** What the service's own option of the JVM says. */
    private static String greeting() {
        return "java " + System.getProperty("greeting", "");
    }

    private static String ask(String next) throws IOException {
        if (next == null) {
            return "";
        }
        HttpURLConnection connection = (HttpURLConnection) URI.create(next).toURL().openConnection();
        return " " + new String(connection.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
