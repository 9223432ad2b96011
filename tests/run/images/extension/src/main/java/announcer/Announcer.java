package announcer;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/** An extension that says that it was loaded, and whose telemetry it sees. */
public final class Announcer implements AutoConfigurationCustomizerProvider {
    @Override
    public void customize(AutoConfigurationCustomizer customizer) {
        customizer.addResourceCustomizer((resource, config) -> {
            String service = resource.getAttribute(AttributeKey.stringKey("service.name"));
            System.out.println("extension loaded for " + service);
            return resource;
        });
    }
}
