import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;

/** An application that knows nothing of OpenTelemetry: it asks itself one thing over HTTP. */
public final class Main {
    public static void main(String[] args) throws IOException {
        System.out.println("greeting=" + System.getProperty("greeting"));
        InetSocketAddress anyPort = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer server = HttpServer.create(anyPort, 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        // Runs until the container is stopped.
        server.start();
        URI self = URI.create("http://localhost:" + server.getAddress().getPort() + "/orders");
        System.out.println("answer=" + self.toURL().openConnection().getHeaderField(0));
    }
}
